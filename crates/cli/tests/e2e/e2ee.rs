//! Tests of end-to-end encryption with the shipped binary: what the server and the wire can read.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cutting_proxy::CuttingProxy;
use crate::fixture::{SyncFixture, check_equal, check_sync_refused, files_below, sync};
use crate::processes::{CommandOutput, json, sql, warren};

/// A table's and a column's name, and values of every kind of write.
const MARKERS: [&str; 6] = [
    "MarkerTableQX",
    "MarkerColumnQX",
    "marker-before-track-QX",
    "marker-inserted-QX",
    "marker-updated-QX",
    "marker-of-the-clone-QX",
];

struct E2eeFixture {
    place: SyncFixture,
    a: String,
    b: String,
    /// The bytes that passed between the devices and the server.
    traffic: Vec<u8>,
}

/// Syncs edits between two devices in both directions; `track` gets these flags.
fn session(flags: &[&str]) -> E2eeFixture {
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = CuttingProxy::recording(&server.address);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(
        &a,
        "CREATE TABLE MarkerTableQX (id INTEGER PRIMARY KEY, MarkerColumnQX TEXT);
         INSERT INTO MarkerTableQX VALUES (1, 'marker-before-track-QX'), (2, 'x')",
    );
    let tracked = json(&[&["track", &a, "--all"], flags].concat());
    place.sign_in("sync", &a, &proxy.address);
    let phrase =
        tracked["recovery_phrase"].as_str().map(|phrase| place.write("phrase.txt", phrase));
    let mut clone = [&["clone", &b], &place.first_time(&proxy.address)[..]].concat();
    if let Some(file) = &phrase {
        clone.extend(["--recovery-phrase-file", file]);
    }
    json(&clone);
    sql(
        &a,
        "INSERT INTO MarkerTableQX VALUES (3, 'marker-inserted-QX');
         UPDATE MarkerTableQX SET MarkerColumnQX = 'marker-updated-QX' WHERE id = 2;
         DELETE FROM MarkerTableQX WHERE id = 1",
    );
    sync(&a);
    sync(&b);
    sql(&b, "INSERT INTO MarkerTableQX VALUES (4, 'marker-of-the-clone-QX')");
    sync(&b);
    sync(&a);
    assert_eq!(check_equal(&a, &b).len(), 3);
    let traffic = proxy.recorded();
    server.stop();
    E2eeFixture { place, a, b, traffic }
}

fn find_markers(bytes: &[u8]) -> Vec<&'static str> {
    let holds =
        |marker: &&str| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
    MARKERS.into_iter().filter(holds).collect()
}

#[test]
fn no_marker_is_on_the_wire_or_on_the_servers_disk() {
    let E2eeFixture { place, a, traffic, .. } = session(&["--e2ee"]);
    assert!(traffic.len() > 2_000, "{} bytes passed", traffic.len());
    assert_eq!(find_markers(&traffic), [""; 0]);
    let files = files_below(Path::new(&place.data));
    assert!(files.len() >= 2);
    for file in files {
        assert_eq!(find_markers(&fs::read(&file).unwrap()), [""; 0], "{}", file.display());
    }
    // The phrase does not leave the device either.
    let phrase = json(&["recovery-phrase", &a])["recovery_phrase"].as_str().unwrap().to_owned();
    let words: Vec<_> = phrase.split(' ').collect();
    let pair = words[..2].join(" ");
    assert!(!traffic.windows(pair.len()).any(|window| window == pair.as_bytes()));
    // Even with the vault's key, which the account's password gives, nothing is readable.
    let vault = place.operator(&["inspect", "--login", "ada", "--verify"]);
    assert_eq!(vault["verified"], true, "{vault}");
    assert_eq!(json(&["status", &a])["e2ee"], true);
}

#[test]
fn without_encryption_the_wire_shows_every_marker() {
    let E2eeFixture { place: _place, a, b, traffic } = session(&[]);
    assert_eq!(find_markers(&traffic), MARKERS);
    assert_eq!(json(&["status", &b])["e2ee"], false);
    warren(&["recovery-phrase", &a, "--json"]).refused("recovery_phrase_not_set");
}

/// A file that synced in plain becomes encrypted, with everything that belongs to it.
#[test]
fn an_account_in_plain_turns_to_encryption() {
    let place = SyncFixture::new();
    let server = place.serve();
    let first_time = place.first_time(&server.address);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    let rows = "INSERT INTO MarkerTableQX VALUES (1, 'one'), (2, 'two'), (3, 'three')";
    sql(&a, &format!("CREATE TABLE MarkerTableQX (id INTEGER PRIMARY KEY, x TEXT); {rows}"));
    warren(&["track", &a, "--all"]).succeeded();
    warren(&[&["sync", &a][..], &first_time].concat()).succeeded();
    warren(&[&["clone", &b][..], &first_time].concat()).succeeded();
    let said = warren(&["track", &a, "--all", "--e2ee"]).succeeded().stdout;
    assert!(said.contains("RECOVERY PHRASE") && said.contains("not encrypted until the next sync"));
    sql(&a, "INSERT INTO MarkerTableQX VALUES (77, 'made in between')");
    assert_eq!(json(&["sync", &a])["in_sync"], true);
    assert_eq!(json(&["status", &a])["e2ee"], true);

    check_sync_refused(&b, "recovery_phrase_required");
    let wrong = place.write("wrong.txt", &format!("{}art", "abandon ".repeat(23)));
    warren(&["sync", &b, "--json", "--recovery-phrase-file", &wrong])
        .refused("wrong_recovery_phrase");
    let phrase = json(&["recovery-phrase", &a])["recovery_phrase"].as_str().unwrap().to_owned();
    let right = place.write("right.txt", &phrase);
    assert_eq!(json(&["sync", &b, "--recovery-phrase-file", &right])["in_sync"], true);
    assert_eq!(check_equal(&a, &b).len(), 4);
    // A device that was created later never sees the plain messages.
    let c = place.at("c.db");
    let clone =
        [&["clone", &c, "--json", "--recovery-phrase-file", &right], &first_time[..]].concat();
    warren(&clone).succeeded();
    assert_eq!(check_equal(&a, &c).len(), 4);
    // No device reads the plain messages any more: a sync has removed them.
    assert_eq!(json(&["sync", &a])["in_sync"], true);
    server.stop();
    let vault = place.operator(&["inspect", "--login", "ada", "--verify"]);
    assert_eq!(vault["messages_count"], 0, "{vault}");
    assert!(vault["sub_vaults"][0]["messages_count"].as_u64() > Some(4), "{vault}");
}

/// The server is lost, and restored from a backup of the time before the account was encrypted.
/// One device is still in plain and continues, one has encrypted the account, one has followed;
/// each has an unsent edit.
#[test]
fn an_account_is_encrypted_again_after_its_server_was_restored() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (url, address) = (server.address.clone(), server.host_and_port().to_owned());
    let first_time = place.first_time(&url);
    let [a, b, c, d] = ["a.db", "b.db", "c.db", "d.db"].map(|name| place.at(name));
    sql(&a, "CREATE TABLE t (id TEXT PRIMARY KEY, x); INSERT INTO t VALUES ('first', 'by a')");
    warren(&["track", &a, "--all"]).succeeded();
    warren(&[&["sync", &a][..], &first_time].concat()).succeeded();
    for clone in [&b, &c] {
        warren(&[&["clone", clone][..], &first_time].concat()).succeeded();
    }
    let backup = place.at("backup");
    json(&["backup", &backup, "--data", &place.data]);
    let insert = |file: &str, id: &str| sql(file, &format!("INSERT INTO t VALUES ('{id}', 1)"));
    warren(&["track", &a, "--all", "--e2ee"]).succeeded();
    assert_eq!(json(&["sync", &a])["in_sync"], true);
    let phrase = json(&["recovery-phrase", &a])["recovery_phrase"].as_str().unwrap().to_owned();
    let phrase = place.write("phrase.txt", &phrase);
    assert_eq!(json(&["sync", &b, "--recovery-phrase-file", &phrase])["in_sync"], true);
    insert(&a, "sealed by a");
    insert(&b, "sealed by b");
    sync(&a);
    sync(&b);
    server.stop();
    fs::remove_dir_all(&place.data).unwrap();
    json(&["restore", &backup, "--data", &place.data]);

    let server = place.serve_at(&address);
    insert(&c, "plain by c");
    assert_eq!(json(&["sync", &c])["in_sync"], true);
    insert(&c, "unsent by c");
    insert(&a, "unsent by a");
    insert(&b, "unsent by b");
    for sealed in [&a, &b] {
        check_sync_refused(sealed, "account_not_encrypted");
    }
    // The error suggests this command.
    warren(&["track", &a, "--all", "--e2ee"]).succeeded();
    let report = json(&["sync", &a]);
    assert_eq!(
        (&report["in_sync"], &report["received_count"]),
        (&json!(true), &json!(1)),
        "{report}"
    );
    // The others follow: the encrypted one without help, the other one with the phrase.
    assert_eq!(json(&["sync", &b])["in_sync"], true);
    check_sync_refused(&c, "recovery_phrase_required");
    assert_eq!(json(&["sync", &c, "--recovery-phrase-file", &phrase])["in_sync"], true);
    for file in [&a, &b, &a, &b, &c] {
        let report = json(&["sync", file]);
        let refused = &report["rejected"]["timestamps"];
        assert_eq!((&report["in_sync"], refused), (&json!(true), &json!([])), "{report}");
    }
    warren(
        &[&["clone", &d, "--json", "--recovery-phrase-file", &phrase], &first_time[..]].concat(),
    )
    .succeeded();
    let rows = check_equal(&a, &b);
    assert_eq!(rows.len(), 7, "{rows:?}");
    assert_eq!((check_equal(&a, &c), check_equal(&a, &d)), (rows.clone(), rows));
    server.stop();
    let vault = place.operator(&["inspect", "--login", "ada", "--verify"]);
    assert_eq!(vault["messages_count"], 0, "nothing is left in plain: {vault}");
}

#[test]
fn the_phrase_is_shown_once_and_again_on_request() {
    let place = SyncFixture::new();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let CommandOutput { stdout, .. } = warren(&["track", &a, "--all", "--e2ee"]).succeeded();
    let phrase = warren(&["recovery-phrase", &a]).succeeded().stdout;
    assert_eq!(phrase.split_whitespace().count(), 24);
    let first: Vec<_> = phrase.split_whitespace().take(4).collect();
    assert!(stdout.contains("RECOVERY PHRASE") && stdout.contains(&first.join(" ")), "{stdout}");
    let again = warren(&["track", &a, "--all", "--e2ee"]).succeeded().stdout;
    assert!(!again.contains("RECOVERY PHRASE") && !again.contains(&first.join(" ")), "{again}");
    assert_eq!(warren(&["recovery-phrase", &a]).succeeded().stdout, phrase);
}

#[test]
fn a_device_says_which_phrase_it_lacks() {
    let E2eeFixture { place, a, .. } = session(&["--e2ee"]);
    let server = place.serve();
    let c = place.at("c.db");
    let clone = [&["clone", &c, "--json"], &place.first_time(&server.address)[..]].concat();
    warren(&clone).refused("recovery_phrase_required");
    check_sync_refused(&c, "recovery_phrase_required");
    let mistyped = place.write("mistyped.txt", &"abandon ".repeat(24));
    warren(&["sync", &c, "--json", "--recovery-phrase-file", &mistyped])
        .refused("invalid_recovery_phrase");
    let wrong = place.write("wrong.txt", &format!("{}art", "abandon ".repeat(23)));
    warren(&["sync", &c, "--json", "--recovery-phrase-file", &wrong])
        .refused("wrong_recovery_phrase");
    assert_eq!(sql(&c, "SELECT count(*) FROM sqlite_schema WHERE name = 'MarkerTableQX'"), "0");
    let phrase = json(&["recovery-phrase", &a])["recovery_phrase"].as_str().unwrap().to_owned();
    let right = place.write("right.txt", &phrase);
    let report: Value = json(&["sync", &c, "--recovery-phrase-file", &right]);
    assert_eq!((&report["in_sync"], &report["sent_count"]), (&json!(true), &json!(0)), "{report}");
    assert_eq!(sql(&c, "SELECT count(*) FROM MarkerTableQX"), "3");
    server.stop();
}
