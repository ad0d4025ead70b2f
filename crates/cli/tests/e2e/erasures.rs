//! Tests of `warren erase` with the shipped binary: a password that was pasted into the wrong
//! field disappears from the server's vault and from every device's file.

use std::fs;
use std::path::Path;

use engine::{FileEncryption, Profile, open_connection};
use serde_json::json;

use crate::fixture::{PASSWORD, SyncFixture, check_equal, files_below, sync, track_all};
use crate::processes::{ServeProcess, json, sql, warren};

const SECRET: &str = "hunter2-and-more-of-it";

/// Returns whether a file, or SQLite's files next to it, contain the secret in their raw bytes.
fn holds(file: &str) -> bool {
    ["", "-wal", "-journal"].iter().any(|suffix| {
        let bytes = fs::read(format!("{file}{suffix}")).unwrap_or_default();
        bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    })
}

/// Returns whether the pages of ada's vault, opened with its key, contain the secret.
fn vault_holds(place: &SyncFixture) -> bool {
    let unlocked = place.unlock(PASSWORD);
    let name = format!("{}.sqlite", unlocked.vault.as_str());
    let files = files_below(Path::new(&place.data));
    let path = files.iter().find(|file| file.ends_with(&name)).unwrap();
    let encryption = FileEncryption::Key { key: unlocked.key, cipher: None };
    let (db, _) = open_connection(path, &encryption, Profile::SERVER, false, false).unwrap();
    let sql = "SELECT count(*) FROM sqlite_dbpage WHERE instr(data, CAST(?1 AS BLOB)) > 0";
    let count: i64 = db.query_row(sql, [SECRET], |row| row.get(0)).unwrap();
    count > 0
}

fn three_devices(place: &SyncFixture, server: &ServeProcess) -> [String; 3] {
    let [a, b, c] = ["a.db", "b.db", "c.db"].map(|name| place.at(name));
    sql(
        &a,
        &format!(
            "PRAGMA journal_mode = wal;
             CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, text TEXT);
             INSERT INTO note VALUES (5, 'wifi', '{SECRET}'), (6, 'shopping', 'milk')"
        ),
    );
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    place.sign_in("clone", &b, &server.address);
    place.sign_in("clone", &c, &server.address);
    [a, b, c]
}

#[test]
fn a_password_that_was_pasted_into_a_note_is_erased_everywhere() {
    let place = SyncFixture::new();
    let server = place.serve();
    let [a, b, c] = three_devices(&place, &server);
    let password = ["--password-file", &place.password];
    let erase = ["erase", &b, "note", "5", "--column", "text"];
    let yes = [&erase[..], &["--yes"], &password].concat();
    warren(&[&yes[..], &["--json"]].concat()).refused("still_shown");
    sql(&b, "UPDATE note SET text = 'see the safe' WHERE id = 5");
    sync(&b);
    // These fail without consent or with another password, and change nothing.
    for usage in [
        &["erase", &b, "note"][..],
        &["erase", &b, "--column", "text"],
        &["erase", &b, "note", "5", "--rejected"],
        &["erase", &b, "--rejected", "--again"],
    ] {
        assert_eq!(warren(usage).status.code(), Some(2), "{usage:?}");
    }
    let unasked = warren(&[&erase[..], &password].concat());
    assert!(!unasked.status.success() && unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let wrong = place.write("wrong.txt", "not the password");
    warren(&[&erase[..], &["--yes", "--password-file", &wrong, "--json"]].concat())
        .refused("wrong_password");
    let address = server.host_and_port().to_owned();
    drop(server);
    assert!(vault_holds(&place), "there before");
    let server = place.serve_at(&address);
    assert_eq!(json(&yes)["erased_count"], 1);
    assert_eq!(json(&yes)["erased_count"], 0, "nothing is left");
    assert_eq!(json(&["erase", &b, "--rejected"])["erased_count"], 0);
    for file in [&a, &c] {
        let report = json(&["sync", file]);
        assert_eq!(
            (&report["in_sync"], &report["erased_count"]),
            (&json!(true), &json!(1)),
            "{report}"
        );
        assert_eq!(report["unscrubbed"], json!(null));
    }
    for file in [&a, &b, &c] {
        assert!(!holds(file), "{file}");
        assert_eq!(sql(file, "SELECT text FROM note ORDER BY id"), "see the safe\nmilk");
        let history = json(&["history", file, "note", "5"]);
        assert_eq!(history["changes"][0]["cells"][1]["value"], "'(erased)'", "{history}");
    }
    sql(&a, "UPDATE note SET title = 'wifi of the guests' WHERE id = 5");
    sync(&a);
    sync(&c);
    check_equal(&a, &c);
    let new = place.at("new.db");
    place.sign_in("clone", &new, &server.address);
    assert!(!holds(&new));
    drop(server);
    assert!(!vault_holds(&place));
    place.check_vault(5);
}

#[test]
fn a_server_that_was_restored_is_erased_again() {
    let place = SyncFixture::new();
    let server = place.serve();
    let [a, b, c] = three_devices(&place, &server);
    sql(&a, "DELETE FROM note WHERE id = 5");
    for file in [&a, &b, &c] {
        sync(file);
    }
    let backup = place.at("backup");
    json(&["backup", &backup, "--data", &place.data]);
    let password = ["--password-file", &place.password, "--yes"];
    let erase = ["erase", &a, "note", "5"];
    assert_eq!(json(&[&erase[..], &password].concat())["erased_count"], 2);
    json(&["sync", &b]);
    let address = server.host_and_port().to_owned();
    drop(server);
    fs::rename(&place.data, place.at("lost")).unwrap();
    json(&["restore", &backup, "--data", &place.data]);
    let _server = place.serve_at(&address);
    let told = warren(&["sync", &b]);
    assert!(!told.status.success() && told.stderr.contains("differ"), "{}", told.stderr);
    assert_eq!(json(&["erase", &b])["unerased_count"], 2);
    assert_eq!(json(&[&["erase", &b, "--again"], &password[..]].concat())["erased_count"], 2);
    for file in [&a, &b, &c] {
        assert_eq!(json(&["sync", file])["in_sync"], true);
        assert!(!holds(file), "{file}");
        assert_eq!(json(&["history", file, "note", "5"])["changes"], json!([]));
    }
}
