//! Tests of overlays: files are recovered and changed as a writer would, without writing a byte to
//! disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use engine::{
    Cipher, Error, FileEncryption, Profile, ReadOnlyMode, open_connection, open_read_only,
};
use rusqlite::Connection;

use crate::{encryption, key, number};

fn overlay(path: &Path, encryption: &FileEncryption) -> Connection {
    open_read_only(path, encryption, ReadOnlyMode::Overlay).unwrap().0
}

fn integrity(db: &Connection) -> String {
    db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn ciphers() -> Vec<(String, FileEncryption)> {
    let with = |cipher| FileEncryption::Key { key: key(), cipher: Some(cipher) };
    let encrypted = Cipher::ALL.into_iter().map(|cipher| (cipher.to_string(), with(cipher)));
    encrypted.chain([("plain".to_owned(), FileEncryption::None)]).collect()
}

/// Creates the files that a kill leaves, in a folder of their own: the database with a hot journal,
/// or with a WAL that no checkpoint has copied. `t` has 2,000 rows in either case.
fn killed(folder: &Path, encryption: &FileEncryption, journal: &str) -> PathBuf {
    let (live, dead) = (folder.join("live"), folder.join("dead"));
    fs::create_dir_all(&live).unwrap();
    fs::create_dir_all(&dead).unwrap();
    let path = live.join("a #1?.db");
    let (db, _) = open_connection(&path, encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch(&format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE t (id INTEGER PRIMARY KEY, x CHECK (x > 0));
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO t SELECT i, i FROM n;
         PRAGMA cache_size = 2; BEGIN; UPDATE t SET x = x + 1; INSERT INTO t SELECT id + 9000, 1 FROM t"
    ))
    .unwrap();
    for suffix in ["", "-journal", "-wal"] {
        let name = format!("a #1?.db{suffix}");
        if live.join(&name).exists() {
            fs::copy(live.join(&name), dead.join(&name)).unwrap();
        }
    }
    dead.join("a #1?.db")
}

#[test]
fn what_a_kill_left_is_recovered_and_changed_in_memory_alone() {
    for (name, encryption) in ciphers() {
        for journal in ["DELETE", "WAL"] {
            let folder = tempfile::tempdir().unwrap();
            let path = killed(folder.path(), &encryption, journal);
            let folder = path.parent().unwrap();
            let before = content(folder);
            assert_eq!(before.len(), 2, "{name} {journal}");

            let db = overlay(&path, &encryption);
            assert_eq!(number(&db, "SELECT sum(x) - count(*) FROM t"), 1_999_000, "{name}");
            assert_eq!(integrity(&db), "ok", "{name} {journal}");
            db.execute_batch(
                "DELETE FROM t WHERE id % 2; CREATE INDEX i ON t (x); ANALYZE; VACUUM;
                 BEGIN; DELETE FROM t; ROLLBACK",
            )
            .unwrap();
            assert_eq!(number(&db, "SELECT count(*) FROM t INDEXED BY i WHERE x > 0"), 1_000);
            assert_eq!(integrity(&db), "ok", "{name} {journal}");
            db.close().unwrap();
            assert!(content(folder) == before, "{name} {journal}");

            // The next overlay finds the content of the disk.
            assert_eq!(number(&overlay(&path, &encryption), "SELECT count(*) FROM t"), 2_000);
        }
    }
}

#[test]
fn a_wrong_key_does_no_harm_either() {
    for (name, encryption) in ciphers() {
        for journal in ["DELETE", "WAL"] {
            let folder = tempfile::tempdir().unwrap();
            let path = killed(folder.path(), &encryption, journal);
            let before = content(path.parent().unwrap());
            let other = engine::DatabaseKey::from_bytes([8; 32]);
            let wrong = match &encryption {
                FileEncryption::None => FileEncryption::Key { key: other, cipher: None },
                _ => FileEncryption::None,
            };
            let error = open_read_only(&path, &wrong, ReadOnlyMode::Overlay).unwrap_err();
            let is_expected = match wrong {
                FileEncryption::None => matches!(error, Error::NotADatabase { .. }),
                _ => matches!(error, Error::WrongKey { .. } | Error::NotEncrypted { .. }),
            };
            assert!(is_expected, "{name} {journal}: {error}");
            assert!(content(path.parent().unwrap()) == before, "{name} {journal}");
        }
    }
}

#[test]
fn no_other_file_is_opened_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = content(folder.path());
    let db = overlay(&path, &FileEncryption::None);
    let other = folder.path().join("b.db");
    for sql in ["VACUUM INTO ?1", "ATTACH ?1 AS other"] {
        let error = db.execute(sql, [other.to_str().unwrap()]).unwrap_err();
        let is_refused = error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen);
        assert!(is_refused, "{sql}: {error}");
    }
    assert!(content(folder.path()) == before);
}

/// A read-only connection ignores CHECK constraints when it reads the schema.
#[test]
fn checks_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (db, _) = open_connection(&path, &encryption(), Profile::SERVER, false, true).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x CHECK (x > 0)); PRAGMA ignore_check_constraints = ON;
         INSERT INTO t VALUES (-1)",
    )
    .unwrap();
    drop(db);
    assert_eq!(integrity(&overlay(&path, &encryption())), "CHECK constraint failed in t");
    let (db, _) = open_read_only(&path, &encryption(), ReadOnlyMode::Immutable).unwrap();
    assert_eq!(integrity(&db), "ok");
}

#[test]
fn a_pipe_for_a_journal_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    for suffix in ["-journal", "-wal"] {
        let pipe = folder.path().join(format!("a.db{suffix}"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
    }
    let db = overlay(&path, &FileEncryption::None);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 0);
}
