//! Tests `recover`: it saves everything of an intact file, and of a damaged one everything outside
//! the damaged pages; the damaged file is not changed.

mod damage;
mod subject;

use std::path::Path;

use doctor::{Error, RecoverOptions, RecoverReport, recover};
use engine::{Cipher, DatabaseKey, FileEncryption};
use rusqlite::Connection;

use crate::fixture::{DoctorFixture, SqliteShell};
use subject::{ciphers, connect, dump, fill, folder, key, key_of, make};

/// Recovers into `out`, and checks that nothing else in the directory changed.
#[track_caller]
fn recovered(path: &Path, encryption: &FileEncryption) -> (RecoverReport, Connection) {
    let before = folder(path);
    let out = path.with_extension("out");
    let report = recover(path, encryption, &out, RecoverOptions::default(), |_| {});
    let report = report.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut after = folder(path);
    after.remove(&out).expect("the new file is there");
    assert!(after == before, "{}", path.display());
    (report, connect(&out, encryption))
}

#[track_caller]
fn is_whole(report: &RecoverReport) {
    assert!(report.complete && report.sound, "{report:#?}");
    assert!(report.collations.is_empty() && report.pages.unreadable_count == 0, "{report:#?}");
}

#[test]
fn of_a_whole_file_everything_is_saved() {
    let fixture = DoctorFixture::new();
    let settings = [
        "",
        "PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL",
        "PRAGMA page_size = 65536; PRAGMA encoding = 'UTF-16le'",
        "PRAGMA encoding = 'UTF-16be'; PRAGMA auto_vacuum = INCREMENTAL",
        "PRAGMA journal_mode = WAL",
    ];
    for (number, settings) in settings.into_iter().enumerate() {
        let path = fixture.at(&format!("{number}.db"));
        make(&path, &FileEncryption::None, settings);
        let expected = dump(&connect(&path, &FileEncryption::None));
        let (report, db) = recovered(&path, &FileEncryption::None);
        is_whole(&report);
        subject::compare(&dump(&db), &expected, settings);
    }
}

#[test]
fn of_a_whole_encrypted_file_everything_is_saved_under_its_key() {
    let fixture = DoctorFixture::new();
    for (name, encryption) in ciphers() {
        for settings in ["", "PRAGMA page_size = 1024", "PRAGMA journal_mode = WAL"] {
            let path = fixture.at(&format!("{name} {settings}.db").replace(' ', "_"));
            make(&path, &encryption, settings);
            let expected = dump(&connect(&path, &encryption));
            let (report, db) = recovered(&path, &encryption);
            is_whole(&report);
            assert_eq!((report.cipher, report.target_cipher), (name, name));
            subject::compare(&dump(&db), &expected, &format!("{name} {settings}"));
        }
    }
}

#[test]
fn a_new_file_without_a_key_is_made_where_that_is_asked_for() {
    let fixture = DoctorFixture::new();
    let (path, out) = (fixture.at("a.db"), fixture.at("out.db"));
    make(&path, &key(), "");
    let options = RecoverOptions { decrypts: true, ..RecoverOptions::default() };
    let report = recover(&path, &key(), &out, options, |_| {}).unwrap();
    is_whole(&report);
    assert_eq!((report.cipher, report.target_cipher), ("chacha20", "none"));
    let expected = dump(&connect(&path, &key()));
    subject::compare(&dump(&connect(&out, &FileEncryption::None)), &expected, "decrypted");
}

#[test]
fn what_a_kill_left_is_recovered_first() {
    let fixture = DoctorFixture::new();
    let all = ciphers().into_iter().chain([("none", FileEncryption::None)]);
    for (name, encryption) in all {
        for journal in ["DELETE", "WAL"] {
            let path = fixture.at(&format!("{name}-{journal}.db"));
            let live = fixture.at(&format!("{name}-{journal}-live.db"));
            let db = connect(&live, &encryption);
            db.execute_batch(&format!("PRAGMA journal_mode = {journal}")).unwrap();
            fill(&db, 2_000);
            if journal == "WAL" {
                db.execute_batch(
                    "PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES (9000, 'last')",
                )
                .unwrap();
            } else {
                db.execute_batch(
                    "PRAGMA cache_size = 2; BEGIN; UPDATE t SET x = 'never committed'",
                )
                .unwrap();
            }
            for suffix in ["", "-journal", "-wal"] {
                let from = live.with_file_name(format!("{name}-{journal}-live.db{suffix}"));
                if from.exists() {
                    let to = path.with_file_name(format!("{name}-{journal}.db{suffix}"));
                    std::fs::copy(from, to).unwrap();
                }
            }
            let beside = if journal == "WAL" { "-wal" } else { "-journal" };
            let beside = path.with_file_name(format!("{name}-{journal}.db{beside}"));
            assert!(beside.metadata().unwrap().len() > 1_000, "{name} {journal}");
            let (report, saved) = recovered(&path, &encryption);
            is_whole(&report);
            let (rows, spoilt): (i64, i64) = saved
                .query_row("SELECT count(*), sum(x LIKE 'never%') FROM t", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            let expected = if journal == "WAL" { 2_001 } else { 2_000 };
            assert_eq!((rows, spoilt), (expected, 0), "{name} {journal}");
            let mode: String =
                saved.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            assert_eq!(mode, journal.to_lowercase(), "{name}");
            drop(saved);
            std::fs::remove_file(path.with_extension("out")).unwrap();
            drop(db);
            for entry in std::fs::read_dir(fixture.at("")).unwrap() {
                std::fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
}

#[test]
fn a_key_that_reads_nothing_is_refused_and_leaves_nothing() {
    let fixture = DoctorFixture::new();
    let refused = |path: &Path, encryption: &FileEncryption| {
        let before = folder(path);
        let out = path.with_extension("out");
        let error = recover(path, encryption, &out, RecoverOptions::default(), |_| {}).unwrap_err();
        assert!(folder(path) == before, "{error}");
        error
    };
    let is_wrong_key =
        |error: Error| matches!(error, Error::WrongKey(_) | Error::NothingReadable(_));
    let is_nothing = |error: Error| matches!(error, Error::NothingRecovered(_));
    let path = fixture.at("a.db");
    make(&path, &key(), "");
    let other = |cipher| FileEncryption::Key { key: DatabaseKey::from_bytes([9; 32]), cipher };
    for cipher in [None].into_iter().chain(Cipher::ALL.map(Some)) {
        assert!(is_wrong_key(refused(&path, &other(cipher))), "{cipher:?}");
    }
    assert!(is_wrong_key(refused(&path, &key_of(Cipher::Aes256Cbc))));
    assert!(is_nothing(refused(&path, &FileEncryption::None)));
    let plain = fixture.at("plain.db");
    make(&plain, &FileEncryption::None, "");
    assert!(is_wrong_key(refused(&plain, &key())));
    let text = fixture.at("text.db");
    std::fs::write(&text, "no database\n".repeat(4_000)).unwrap();
    assert!(is_nothing(refused(&text, &FileEncryption::None)));
    let empty = fixture.at("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(is_nothing(refused(&empty, &FileEncryption::None)));
}

#[test]
fn no_other_file_is_replaced_and_no_open_one_is_read() {
    let fixture = DoctorFixture::new();
    let (path, out) = (fixture.at("a.db"), fixture.at("out.db"));
    make(&path, &FileEncryption::None, "");
    let options = RecoverOptions::default();
    let try_it = || recover(&path, &FileEncryption::None, &out, options, |_| {});
    for taken in [out.clone(), fixture.at("out.db-wal")] {
        std::fs::write(&taken, "mine").unwrap();
        assert!(matches!(try_it().unwrap_err(), Error::Exists(path) if path == taken));
        assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
        std::fs::remove_file(taken).unwrap();
    }
    let shell = SqliteShell::start(&path, "BEGIN; SELECT count(*) FROM plain;");
    assert!(matches!(try_it().unwrap_err(), Error::InUse { .. }));
    drop(shell);
    is_whole(&try_it().unwrap());
}

/// Checks a schema with malicious statements: this one tries to write a file of its own.
#[test]
fn what_the_schema_says_opens_no_other_file() {
    let fixture = DoctorFixture::new();
    let (path, evil) = (fixture.at("a.db"), fixture.at("evil.db"));
    let db = connect(&path, &FileEncryption::None);
    db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1); PRAGMA writable_schema = ON")
        .unwrap();
    let sql = format!(
        "CREATE TABLE u (x); ATTACH '{0}' AS evil; CREATE TABLE evil.v (x); VACUUM INTO '{0}2'",
        evil.display()
    );
    let root = "SELECT 'table', 'u', 'u', rootpage, ?1 FROM sqlite_schema";
    db.execute(&format!("INSERT INTO sqlite_schema {root}"), [sql]).unwrap();
    db.close().unwrap();
    drop(recover(
        &path,
        &FileEncryption::None,
        &fixture.at("out.db"),
        RecoverOptions::default(),
        |_| {},
    ));
    assert!(!evil.exists() && !fixture.at("evil.db2").exists());
}
