//! Tests of `warren tune` as a whole, with small measurements: its report, and the files that it
//! does not change.

use std::fs;
use std::path::Path;

use engine::{Cipher, DatabaseKey, FileEncryption, Profile, open_connection};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{CHINOOK, DISK};
use crate::processes::{CommandOutput, json, sql, warren};

/// Creates a folder to measure in.
fn folder() -> TempDir {
    tempfile::tempdir_in(DISK).unwrap()
}

/// Runs the shortest measurement.
fn tune(arguments: &[&str], folder: &TempDir) -> Value {
    let folder = folder.path().to_str().unwrap();
    json(&[&["tune", "--minutes", "0.01", "--work-dir", folder], arguments].concat())
}

#[track_caller]
fn refused(arguments: &[&str], code: &str) -> CommandOutput {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let ran = warren(&[&["tune", "--json", "--work-dir", path], arguments].concat());
    ran.refused(code);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left behind");
    ran
}

fn list(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns a setting in the form of the report's lists.
fn setting(pragma: &str, value: &str) -> Value {
    json!({"pragma": pragma, "value": value})
}

fn tried(report: &Value) -> Vec<(&str, &str)> {
    let all = report["trials"].as_array().unwrap().iter();
    all.map(|one| (one["pragma"].as_str().unwrap(), one["value"].as_str().unwrap())).collect()
}

/// Checks that no setting recommended for speed was found to be slower, whatever else the machine
/// did.
#[track_caller]
fn check_honest(report: &Value) {
    let faster = |one: &Value| {
        let comparisons = one["comparisons"].as_array().unwrap();
        let is =
            |verdict: &str| comparisons.iter().any(|of| of["difference"]["verdict"] == verdict);
        is("faster") && !is("slower")
    };
    for one in report["trials"].as_array().unwrap() {
        let comparisons = one["comparisons"].as_array().unwrap();
        assert_eq!(comparisons.len(), 3, "{one}");
        for of in comparisons {
            assert!(of["ratio"]["samples"].as_array().unwrap().len() >= 6, "{of}");
        }
        let wants_gain = ["chosen", "needs_permission"].map(Value::from);
        assert!(!wants_gain.contains(&one["outcome"]) || faster(one), "{one}");
    }
    for one in report["recommended"].as_array().unwrap() {
        let is_faster = one["reason"] == "faster" && one["pragma"] != "synchronous";
        let of =
            |tried: &&Value| tried["pragma"] == one["pragma"] && tried["value"] == one["value"];
        let found = report["trials"].as_array().unwrap().iter().find(of);
        assert!(!is_faster || found.unwrap()["outcome"] == "chosen", "{one}");
    }
}

#[test]
fn a_file_is_measured_on_a_copy_and_stays_as_it_is() {
    let folder = folder();
    let report = tune(&[CHINOOK, "--workload", "read"], &folder);
    check_honest(&report);
    let all = tried(&report);
    for expected in [("journal_mode", "WAL"), ("page_size", "8192"), ("mmap_size", "268435456")] {
        assert!(all.contains(&expected), "{expected:?}: {all:?}");
    }
    let load: Vec<&str> = report["workload_tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    assert!(
        load.iter().any(|line| line.starts_with("Track, 3,503 rows: reads by key")),
        "{load:?}"
    );
    assert_eq!((&report["workload"], &report["file"]["cipher"]), (&json!("read"), &Value::Null));
    assert!(
        report["current_settings"].as_array().unwrap().contains(&setting("journal_mode", "DELETE"))
    );
    assert!(list(folder.path()).is_empty(), "the copy is gone");
}

#[test]
fn nothing_unsafe_is_tried_unless_allowed() {
    let folder = folder();
    let file = folder.path().join("a.db");
    let file = file.to_str().unwrap();
    sql(
        file,
        "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, x); \
               INSERT INTO t (x) VALUES (1), (2), (3)",
    );
    let risky = [("synchronous", "OFF"), ("journal_mode", "MEMORY")];
    let normal = ("synchronous", "NORMAL");
    let report = tune(&[file], &folder);
    check_honest(&report);
    let all = tried(&report);
    assert!(!risky.iter().any(|one| all.contains(one)), "{all:?}");
    let of_normal =
        report["trials"].as_array().unwrap().iter().find(|one| one["value"] == normal.1);
    let of_normal = of_normal.expect("what it would gain is said");
    assert_eq!(of_normal["safety"], "loses_last_commits");
    assert_ne!(of_normal["outcome"], "chosen");
    let settings: Vec<(&str, &str)> = recommended(&report);
    assert!(settings.contains(&("synchronous", "FULL")), "{settings:?}");
    assert!(settings.iter().all(|(name, _)| *name != "foreign_keys"), "{settings:?}");

    let report = tune(&[file, "--allow-unsafe"], &folder);
    let all = tried(&report);
    assert!(risky.iter().all(|one| all.contains(one)) && all.contains(&normal), "{all:?}");
    // A file that has it already loses nothing by it.
    let report = tune(&[file, "--current-pragmas", "synchronous=NORMAL,cache_size=-4000"], &folder);
    assert!(recommended(&report).contains(&normal), "{report}");
    assert!(
        report["current_settings"].as_array().unwrap().contains(&setting("cache_size", "-4000"))
    );
    let before = list(folder.path());
    assert_eq!(before, ["a.db"], "neither copies nor anything beside the file");
}

fn recommended(report: &Value) -> Vec<(&str, &str)> {
    let all = report["recommended"].as_array().unwrap().iter();
    all.map(|one| (one["pragma"].as_str().unwrap(), one["value"].as_str().unwrap())).collect()
}

#[test]
fn a_file_in_use_is_copied_with_what_is_only_in_its_wal() {
    let place = folder();
    let path = place.path().join("live.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE live (id INTEGER PRIMARY KEY, x TEXT);
         INSERT INTO live VALUES (1, 'a'), (2, 'b')",
    )
    .unwrap();
    let bytes =
        || list(place.path()).into_iter().map(|name| fs::read(place.path().join(name)).unwrap());
    let before: Vec<_> = bytes().collect();
    let check = |file: &Path, folder: &TempDir| {
        let report = tune(&[file.to_str().unwrap()], folder);
        let line = report["workload_tables"][0].as_str().unwrap().to_owned();
        assert!(line.starts_with("live, 2 rows: "), "{line}");
    };
    check(&path, &folder());
    assert_eq!(bytes().collect::<Vec<_>>(), before, "file, WAL and its index");
    // As after a crash, no process has the file open, and its WAL contains everything.
    let crashed = folder();
    for name in ["live.db", "live.db-wal"] {
        fs::copy(place.path().join(name), crashed.path().join(name)).unwrap();
    }
    check(&crashed.path().join("live.db"), &folder());
    assert_eq!(list(crashed.path()), ["live.db", "live.db-wal"]);
    let wal = |of: &TempDir| fs::read(of.path().join("live.db-wal")).unwrap();
    assert_eq!(wal(&crashed), wal(&place));
}

#[test]
fn half_a_transaction_is_rolled_back_in_the_copy() {
    let (place, crashed) = (folder(), folder());
    let db = Connection::open(place.path().join("live.db")).unwrap();
    db.execute_batch(
        "CREATE TABLE live (id INTEGER PRIMARY KEY, x TEXT);
         INSERT INTO live VALUES (1, 'a'), (2, 'b'); PRAGMA cache_size = 1; BEGIN;
         WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO live SELECT i, hex(randomblob(50)) FROM n",
    )
    .unwrap();
    for name in ["live.db", "live.db-journal"] {
        fs::copy(place.path().join(name), crashed.path().join(name)).unwrap();
    }
    let report = tune(&[crashed.path().join("live.db").to_str().unwrap()], &folder());
    let line = report["workload_tables"][0].as_str().unwrap().to_owned();
    assert!(line.starts_with("live, 2 rows: "), "{line}");
    assert_eq!(list(crashed.path()), ["live.db", "live.db-journal"]);
}

#[test]
fn an_encrypted_file_stays_so_in_the_copy() {
    let place = folder();
    let path = place.path().join("secret.db");
    let key = DatabaseKey::generate();
    let encryption = FileEncryption::Key { key: key.clone(), cipher: Some(Cipher::Aegis) };
    let (db, _) = open_connection(&path, &encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch(
        "CREATE TABLE s (id INTEGER PRIMARY KEY, x); INSERT INTO s (x) VALUES (1), (2)",
    )
    .unwrap();
    drop(db);
    let key_file = place.path().join("key");
    fs::write(&key_file, key.as_bytes()).unwrap();
    let (file, key_file) = (path.to_str().unwrap(), key_file.to_str().unwrap());
    let report = tune(&[file, "--key-file", key_file, "--cipher", "aegis"], &folder());
    check_honest(&report);
    assert_eq!(report["file"]["cipher"], "aegis");
    let all = tried(&report);
    assert!(!all.iter().any(|(pragma, _)| ["mmap_size", "page_size"].contains(pragma)), "{all:?}");
    assert!(recommended(&report).contains(&("temp_store", "MEMORY")));
    refused(&[file], "not_a_database");
    refused(&[file, "--key-file", key_file, "--cipher", "chacha20"], "wrong_key");
}

#[test]
fn what_cannot_be_tuned_is_said() {
    let place = folder();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let check = |arguments: &[&str], code: &str, expected: &str| {
        let refused = refused(arguments, code).value();
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains(expected), "{said}");
    };
    fs::write(at("text"), "no database, but long enough to be read as one".repeat(100)).unwrap();
    fs::write(at("empty"), "").unwrap();
    sql(&at("rowless"), "CREATE TABLE t (a)");
    check(&[&at("missing")], "file_not_found", "missing");
    check(&[&at("text")], "not_a_database", "not a SQLite database");
    check(&[&at("empty")], "invalid_file", "is empty");
    check(&[&at("rowless")], "invalid_file", "no table has rows");
    check(&[place.path().to_str().unwrap()], "not_a_file", "is not a file");
    check(&[CHINOOK, "--workload", "mail"], "invalid_argument", "generates its own file");
    // A file of 100 TB consists almost entirely of holes.
    let huge = fs::File::create(at("huge")).unwrap();
    huge.set_len(100 << 40).or_else(|_| huge.set_len(10 << 40)).unwrap();
    check(&[&at("huge")], "disk_full", "not enough disk space");
}

#[test]
fn named_workloads_make_files_of_their_own() {
    for (workload, about) in [("sync", "50,000 changes"), ("mail", "10,000 messages")] {
        let report = tune(&["--workload", workload], &folder());
        check_honest(&report);
        assert!(report["workload_tables"][0].as_str().unwrap().starts_with(about), "{report}");
        assert_eq!(report["file"], Value::Null);
    }
}

#[test]
fn what_was_found_is_written_as_code() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let arguments =
        ["tune", CHINOOK, "--minutes", "0.01", "--work-dir", path, "--emit", "better-sqlite3"];
    let code = warren(&arguments).succeeded().stdout;
    assert!(code.contains("db.pragma('busy_timeout = 5000');"), "{code}");
    // Chinook's tables refer to each other.
    assert!(code.contains("db.pragma('foreign_keys = ON');"), "{code}");
    let text = warren(&arguments[..arguments.len() - 2]).succeeded().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for expected in [
        "workload mixed on ",
        "current settings: ",
        "PRAGMA busy_timeout = 5000;",
        "-- waits for locks: longer than a transaction, shorter than people wait",
        "-- not for speed: enforces the schema's foreign keys",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
