//! Database files and WALs that the doctor is given.

use std::fs;
use std::time::Duration;

use doctor::Options;
use engine::Encryption;
use rusqlite::Connection;
use tempfile::TempDir;

/// The first two bytes say how many pages of 512 bytes are the file; the rest is its WAL.
pub(crate) fn doctor(bytes: &[u8]) {
    let Some((count, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*count)) * 512;
    let (database, wal) = rest.split_at(length.min(rest.len()));
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.db");
    fs::write(&path, database).expect("a file");
    if !wal.is_empty() {
        fs::write(folder.path().join("a.db-wal"), wal).expect("a file");
    }
    let options = Options { budget: Duration::from_millis(500), ..Options::default() };
    // That it is no database is an error, which is all that is said of most.
    drop(doctor::examine(&path, &Encryption::None, &options));
    assert_eq!(fs::read(&path).ok().as_deref(), Some(database), "the doctor wrote to the file");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.db");
    let db = Connection::open(&path).expect("a file");
    db.execute_batch(
        "PRAGMA page_size = 512;
         CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REFERENCES t (id));
         CREATE INDEX t_a ON t (a);
         INSERT INTO t (a) VALUES ('one'), ('two'), (hex(zeroblob(300)));
         CREATE TABLE k (a PRIMARY KEY, b UNIQUE) WITHOUT ROWID;
         INSERT INTO k VALUES (1, 2), ('x', 0.5);",
    )
    .expect("sql");
    let whole = fs::read(&path).expect("the file");
    let pages = |bytes: &[u8]| u16::try_from(bytes.len() / 512).expect("few pages").to_le_bytes();
    let alone = [&pages(&whole), &whole[..]].concat();
    db.execute_batch("PRAGMA journal_mode = WAL; DELETE FROM t WHERE id = 3;").expect("sql");
    let whole = fs::read(&path).expect("the file");
    let wal = fs::read(folder.path().join("a.db-wal")).expect("its WAL");
    vec![alone, [&pages(&whole), &whole[..], &wal].concat()]
}
