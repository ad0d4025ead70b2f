//! Tests of `warren recover` as people and programs see it. The tests of `doctor` cover which rows
//! are saved from which damage.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use replica::FileKey;
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use zeroize::Zeroizing;

use crate::file_modes::{below, start, wait_until};
use crate::processes::{json, sql, warren};

const PASSPHRASE: &str = "three small words";

/// Creates a file with a table of `rows` rows; it is encrypted if there is a passphrase.
fn make(folder: &TempDir, rows: u32, passphrase: Option<&str>) -> String {
    let file = folder.path().join("a.db").to_str().unwrap().to_owned();
    let db = Connection::open(&file).unwrap();
    if let Some(passphrase) = passphrase {
        FileKey::Passphrase(Zeroizing::new(passphrase.into())).apply_to(&db).unwrap();
    }
    db.execute_batch(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); CREATE INDEX by_x ON t (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, printf('row %d %0100d', i, i) FROM n"
    ))
    .unwrap();
    db.close().unwrap();
    file
}

/// Damages a leaf of the table.
fn spoil(file: &str) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&[0xa5; 64], 9 * 4096 + 2_000).unwrap();
}

fn out(file: &str) -> String {
    file.replace("a.db", "saved.db")
}

#[test]
fn a_whole_file_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(&folder, 2_000, None);
    let (before, out) = (fs::read(&file).unwrap(), out(&file));
    let report = json(&["recover", &file, &out]);
    assert_eq!((&report["complete"], &report["sound"]), (&json!(true), &json!(true)));
    assert_eq!(report["saved_rows_count"], 2_000, "{report}");
    assert_eq!(report["tables"][0]["saved_rows_count"], 2_000, "{report}");
    let all = "SELECT * FROM t; SELECT sql FROM sqlite_schema; PRAGMA integrity_check;";
    assert_eq!(sql(&out, all), sql(&file, all));
    assert_eq!(Path::new(&out).metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(below(folder.path()).len(), 2);

    warren(&["recover", &file, &out, "--json"]).refused("file_exists");
    let told = warren(&["recover", &file, &format!("{out}2")]).succeeded().stdout;
    for part in ["2,000 rows", "SQLite found no errors", "next: compare", "close every program"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

#[test]
fn what_an_encrypted_file_has_lost_is_told_and_in_the_status() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(&folder, 2_000, Some(PASSPHRASE));
    spoil(&file);
    let before = fs::read(&file).unwrap();
    let words = folder.path().join("words").to_str().unwrap().to_owned();
    fs::write(&words, PASSPHRASE).unwrap();
    let key = ["--passphrase-file", words.as_str()];
    let out = out(&file);

    let ran = warren(&[&["recover", &file, &out, "--json"], &key[..]].concat());
    assert_eq!(ran.status.code(), Some(3), "{}{}", ran.stdout, ran.stderr);
    let report: Value = ran.value();
    assert_eq!(report["pages"]["unreadable_count"], 1, "{report}");
    let table = &report["tables"][0];
    let rows = |name: &str| table[name].as_u64().unwrap();
    assert_eq!(rows("saved_rows_count") + rows("lost_rows_count"), 2_000, "{report}");
    assert!(rows("lost_rows_count") > 0 && rows("lost_pages_count") == 1, "{report}");
    assert_eq!(
        (&report["cipher"], &report["target_cipher"]),
        (&json!("chacha20"), &json!("chacha20"))
    );
    assert_eq!(fs::read(&file).unwrap(), before);
    // The file opens with the same passphrase, and after `--decrypt` without one.
    let db = Connection::open(&out).unwrap();
    FileKey::Passphrase(Zeroizing::new(PASSPHRASE.into())).apply_to(&db).unwrap();
    let count: i64 = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(count.cast_unsigned(), rows("saved_rows_count"));
    let plain = format!("{out}-plain");
    let ran = warren(&[&["recover", &file, &plain, "--decrypt"], &key[..]].concat());
    assert_eq!(ran.status.code(), Some(3), "{}{}", ran.stdout, ran.stderr);
    for part in ["1 unreadable", "at least", "1 page lost with everything on or below"] {
        assert!(ran.stdout.contains(part), "no {part:?} in {}", ran.stdout);
    }
    let saved = sql(&plain, "SELECT count(*) FROM t; PRAGMA integrity_check;");
    assert_eq!(saved, format!("{}\nok", rows("saved_rows_count")));

    let other = format!("{out}-other");
    warren(&["recover", &file, &other, "--json"]).refused("nothing_recovered");
    fs::write(&words, "other words").unwrap();
    warren(&[&["recover", &file, &other, "--json"], &key[..]].concat()).refused("wrong_key");
    assert!(!Path::new(&other).exists());
}

/// The fix that the doctor prints works.
#[test]
fn the_doctor_prints_the_command_with_the_keys_option() {
    for passphrase in [None, Some(PASSPHRASE)] {
        let folder = tempfile::tempdir().unwrap();
        let file = make(&folder, 2_000, passphrase);
        spoil(&file);
        let words = folder.path().join("words").to_str().unwrap().to_owned();
        fs::write(&words, PASSPHRASE).unwrap();
        let key = passphrase.map_or(vec![], |_| vec!["--passphrase-file", words.as_str()]);
        let examined = warren(&[&["doctor", &file, "--json"], &key[..]].concat());
        assert_eq!(examined.status.code(), Some(4), "{}", examined.stdout);
        let said = examined.stdout;
        let command = format!("warren recover {file} {file}.recovered");
        assert!(said.contains(&command), "no {command:?} in {said}");
        let has_key = said.contains(&format!("{command} --key-file KEY"));
        assert_eq!(has_key, passphrase.is_some(), "{said}");
        let out = format!("{file}.recovered");
        let ran = warren(&[&["recover", &file, &out], &key[..]].concat());
        assert_eq!(ran.status.code(), Some(3), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_signal_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder, 300_000, None);
    let mut process = start(folder.path(), &["recover", "a.db", "saved.db"]);
    wait_until("the new file in its folder", || {
        below(folder.path()).iter().any(|path| path.ends_with("recovered.sqlite"))
            || folder.path().join("saved.db").exists()
    });
    process.signal(Signal::INT);
    let status = process.wait();
    let left: Vec<_> = below(folder.path());
    if status.signal() == Some(Signal::INT.as_raw()) {
        assert_eq!(left, [folder.path().join("a.db")]);
    } else {
        // The command has just ended before the signal.
        assert_eq!((status.code(), left.len()), (Some(0), 2), "{left:?}");
    }
}
