//! Fuzz targets for database files and WALs that the doctor examines, and for query logs.

use std::fs;
use std::time::Duration;

use doctor::{ExamineOptions, QueryLog};
use engine::FileEncryption;
use rusqlite::Connection;
use tempfile::TempDir;

/// Examines a database. The first two bytes are the number of pages of 512 bytes in the file; the
/// rest is its WAL.
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
    let options =
        ExamineOptions { time_limit: Duration::from_millis(500), ..ExamineOptions::default() };
    // Most inputs are not a database, which is an error and nothing more.
    drop(doctor::examine(&path, &FileEncryption::None, &options));
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

/// Reads a program's log, as `warren doctor --queries` does.
pub(crate) fn logs(bytes: &[u8]) {
    let mut workload = QueryLog::default();
    workload.read(bytes).expect("bytes in memory can be read");
    let mut again = workload.clone();
    again.read(bytes).expect("bytes in memory can be read");
    assert_eq!(workload.is_empty(), again.is_empty(), "a log twice has no other statements");
}

pub(crate) fn log_seeds() -> Vec<Vec<u8>> {
    [
        "SELECT * FROM t WHERE a = 1\nWITH x AS (\nSELECT 'a;\n') SELECT * FROM x;\nPRAGMA y;\n",
        "SELECT 1 WHERE a IN (1, x'ff', \"b\"); -- 3000 ns\n",
        "DEBUG (0.002) SELECT \"a\" FROM \"t\" WHERE x = 'y'; args=('y',); alias=default\n",
        "INFO sqlalchemy.engine.Engine SELECT a\nFROM t\nINFO sqlalchemy.engine.Engine \
         [generated in 0.1s] ('a', 1, None)\n",
        "INFO:sqlalchemy.engine:INSERT INTO t VALUES (?)\nINFO:sqlalchemy.engine:[cached since 1s] \
         [('a',)  ... displaying 10 of 1000 total bound parameter sets ...  ('b',)]\n",
        "  \x1b[1mUser Load (0.2ms)\x1b[0m  SELECT * FROM u WHERE id = ?  [[\"id\", 1], [\"n\", nil]]\n",
    ]
    .map(|log| log.as_bytes().to_vec())
    .to_vec()
}
