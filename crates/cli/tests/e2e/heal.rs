//! Tests that a sync repairs the damage that a backup, a restore or a statement in the wrong table
//! causes.

use std::fs;
use std::path::Path;
use std::process::Command;

use engine::{FileEncryption, Profile};
use serde_json::{Value, json as value};

use crate::fixture::{PASSWORD, SyncFixture, check_equal, check_report, track_all};
use crate::processes::{ServeProcess, json, sql, warren};

/// The account's vault, and two files in sync with it.
struct SyncedPair {
    place: SyncFixture,
    a: String,
    b: String,
}

impl SyncedPair {
    fn new() -> Self {
        let place = SyncFixture::new();
        let server = place.serve();
        let (a, b) = (place.chinook("a.db"), place.at("b.db"));
        track_all(&a);
        place.sign_in("sync", &a, &server.address);
        place.sign_in("clone", &b, &server.address);
        server.stop();
        Self { place, a, b }
    }

    /// Runs a statement in the vault, as another program with its key would.
    fn in_vault(&self, sql: &str) -> usize {
        let unlocked = self.place.unlock(PASSWORD);
        let path = unlocked.vault.path(Path::new(&self.place.data));
        let encryption = FileEncryption::Key { key: unlocked.key, cipher: None };
        let opened = engine::open_connection(&path, &encryption, Profile::SERVER, false, false);
        opened.unwrap().0.execute(sql, []).unwrap()
    }

    /// Checks that both files sync without reconciling and are equal, and the vault, too.
    fn check(&self) {
        let server = self.place.serve();
        for file in [&self.a, &self.b, &self.a] {
            check_report(&sync(file, &server));
        }
        server.stop();
        check_equal(&self.a, &self.b);
        let vault = self.place.operator(&["inspect", "--login", "ada", "--verify"]);
        assert_eq!(vault["verified"], true, "{vault}");
    }
}

/// Syncs a file; the server has another address each time it starts.
#[track_caller]
fn sync(file: &str, server: &ServeProcess) -> Value {
    json(&["sync", file, "--server", &server.address])
}

/// Runs a sync that must reconcile, and report it.
#[track_caller]
fn heal(file: &str, server: &ServeProcess) -> Value {
    let report = sync(file, server);
    assert_eq!(
        (&report["in_sync"], &report["reconciled"]),
        (&Value::from(true), &Value::from(true)),
        "{report}"
    );
    report
}

fn copy(from: &str, to: &str) {
    assert!(Command::new("cp").args(["-r", from, to]).status().unwrap().success());
}

#[test]
fn a_server_restored_from_yesterday_s_backup_gets_back_what_it_lost() {
    let it = SyncedPair::new();
    let backup = it.place.at("backup");
    copy(&it.place.data, &backup);
    let server = it.place.serve();
    sql(&it.a, "UPDATE Track SET Composer = 'since yesterday' WHERE TrackId < 200");
    sync(&it.a, &server);
    sql(&it.b, "INSERT INTO Genre VALUES (100, 'since yesterday')");
    sync(&it.b, &server);
    sync(&it.a, &server);
    server.kill();
    fs::remove_dir_all(&it.place.data).unwrap();
    copy(&backup, &it.place.data);

    let server = it.place.serve();
    // The other device changes a row before the loss is noticed: sequence numbers are assigned
    // again.
    sql(&it.b, "INSERT INTO Genre VALUES (101, 'after the restore')");
    let of_b = heal(&it.b, &server);
    assert!(of_b["sent_count"].as_u64().unwrap() >= 200, "{of_b}");
    let of_a = sync(&it.a, &server);
    assert_eq!(
        (&of_a["in_sync"], &of_a["sent_count"]),
        (&Value::from(true), &Value::from(0)),
        "{of_a}"
    );
    server.stop();
    it.check();
    let changed = "SELECT count(*) FROM Track WHERE Composer = 'since yesterday'";
    assert_eq!(sql(&it.a, changed), "199");
    assert_eq!(sql(&it.a, "SELECT count(*) FROM Genre WHERE GenreId >= 100"), "2");
}

#[test]
fn a_device_restored_from_last_week_s_backup_catches_up_and_its_edits_arrive() {
    let it = SyncedPair::new();
    let backup = it.place.at("last-week.db");
    copy(&it.a, &backup);
    let server = it.place.serve();
    sql(&it.a, "UPDATE Artist SET Name = 'this week' WHERE ArtistId <= 50");
    sync(&it.a, &server);
    sql(&it.b, "DELETE FROM PlaylistTrack WHERE PlaylistId = 1");
    sync(&it.b, &server);
    // The file is overwritten in place, so that it stays the same file to the system: Warren has
    // no sign of it.
    fs::write(&it.a, fs::read(&backup).unwrap()).unwrap();
    sql(&it.a, "UPDATE Artist SET Name = 'after the restore' WHERE ArtistId = 60");
    let report = sync(&it.a, &server);
    assert_eq!(report["in_sync"], true, "{report}");
    sync(&it.b, &server);
    server.stop();
    it.check();
    let names =
        "SELECT group_concat(DISTINCT Name) FROM Artist WHERE ArtistId <= 50 OR ArtistId = 60";
    assert_eq!(sql(&it.b, names), "this week,after the restore");
    assert_eq!(sql(&it.a, "SELECT count(*) FROM PlaylistTrack WHERE PlaylistId = 1"), "0");
}

#[test]
fn messages_deleted_by_hand_come_back_from_the_other_side() {
    let it = SyncedPair::new();
    assert_eq!(it.in_vault("DELETE FROM message WHERE seq IN (1, 7000, 15000)"), 3);
    let server = it.place.serve();
    let report = heal(&it.b, &server);
    assert_eq!(
        (&report["sent_count"], &report["received_count"]),
        (&Value::from(3), &Value::from(0)),
        "{report}"
    );
    assert_eq!(
        sql(&it.a, "DELETE FROM warren_message WHERE id IN (5, 9999); SELECT changes()"),
        "2"
    );
    let report = heal(&it.a, &server);
    assert_eq!(
        (&report["sent_count"], &report["received_count"]),
        (&Value::from(0), &Value::from(2)),
        "{report}"
    );
    server.stop();
    it.check();
}

#[test]
fn a_window_changed_by_hand_is_found_by_inspect_and_by_whoever_compares() {
    let it = SyncedPair::new();
    let wrong = "UPDATE fingerprint_window SET digest = zeroblob(16)
                 WHERE window_id = (SELECT max(window_id) FROM fingerprint_window)";
    assert_eq!(it.in_vault(wrong), 1);
    let inspect = ["inspect", "--login", "ada", "--verify"];
    assert_eq!(it.place.operator_finding_differences(&inspect)["verified"], false);
    assert_eq!(it.place.operator(&inspect)["verified"], true, "rebuilt");

    // The same works without inspect: a message is missing here, so the file reconciles, and the
    // vault repairs itself.
    assert_eq!(it.in_vault(wrong), 1);
    let server = it.place.serve();
    sql(&it.a, "DELETE FROM warren_message WHERE id = 77");
    heal(&it.a, &server);
    server.stop();
    it.check();
}

#[test]
fn inspect_says_in_words_what_it_found() {
    let it = SyncedPair::new();
    let arguments = ["inspect", "--login", "ada", "--verify"];
    let arguments = [&arguments[..], &["--data", &it.place.data]].concat();
    let arguments = [&arguments[..], &["--password-file", &it.place.password]].concat();
    let said = warren(&arguments).succeeded().stdout;
    assert!(said.contains("verified: the fingerprints match the messages"), "{said}");
    it.in_vault("DELETE FROM fingerprint_window");
    let ran = warren(&arguments);
    assert_eq!(ran.status.code(), Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("rebuilt: "), "{}", ran.stdout);
}

/// A program deletes the pending changes that the triggers recorded.
#[test]
fn what_no_message_says_is_found_by_verify_and_sent_by_compare() {
    let it = SyncedPair::new();
    let verify = ["status", &it.a, "--offline", "--verify", "--json"];
    let verified = json(&verify[..4])["verification"].clone();
    assert_eq!((&verified["differing_count"], &verified["differences"]), (&value!(0), &value!([])));
    assert!(verified["rows_count"].as_u64() > Some(10_000), "{verified}");
    sql(
        &it.a,
        "UPDATE Artist SET Name = 'unheard' WHERE ArtistId = 7;
         DELETE FROM PlaylistTrack WHERE PlaylistId = 1 AND TrackId = 3402;
         DELETE FROM warren_outbox",
    );
    let server = it.place.serve();
    sync(&it.a, &server);
    let found = warren(&verify);
    assert_eq!(found.status.code(), Some(4), "{}", found.stdout);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let expected = value!([
        {"table": "Artist", "key": "7", "kind": "changed", "columns": ["Name"]},
        {"table": "PlaylistTrack", "key": "1, 3402", "kind": "missing", "columns": []},
    ]);
    assert_eq!(found["verification"]["differences"], expected);
    let said = warren(&verify[..4]).stdout;
    assert!(said.contains("  Artist (7): updated without a recorded change: Name\n"), "{said}");
    let report = json(&["sync", &it.a, "--compare", "--server", &server.address]);
    assert_eq!(report["sent_count"], 2, "{report}");
    sync(&it.b, &server);
    assert_eq!(json(&verify[..4])["verification"]["differing_count"], 0);
    server.stop();
    it.check();
}
