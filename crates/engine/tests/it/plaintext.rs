//! Tests that no plaintext of an encrypted database reaches the disk, even while SQLite sorts,
//! indexes and vacuums.
//!
//! The test runs itself again under `strace` and searches everything that this process wrote, to
//! any file, for a marker that every row holds. Two mechanisms keep the marker out: temporary
//! content stays in memory, and `sqlite3mc` (since 2.6) encrypts the temporary files that it
//! creates. The test checks both together, and the second alone. To prove that it can fail, it also
//! checks an unencrypted database, where the marker must appear in the temporary files too.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{FileEncryption, Profile, open_connection};
use rusqlite::Connection;

use crate::encryption;

const MARKER: &str = "a-marker-that-must-not-reach-the-disk";

/// Environment variable of the run under `strace`: the database's path.
const DATABASE: &str = "ENGINE_TEST_PLAINTEXT_DATABASE";
/// Environment variable of the run under `strace`: a [`TracedCase`]'s name.
const CASE: &str = "ENGINE_TEST_PLAINTEXT_CASE";

#[derive(Clone, Copy, Debug, PartialEq)]
enum TracedCase {
    /// The engine's normal use of an encrypted database.
    Ours,
    /// An encrypted database with temporary files.
    TemporaryFiles,
    Unencrypted,
}

#[test]
fn no_plaintext_is_written_by_vacuum_index_sort_and_statement_journal() {
    let directory = tempfile::tempdir().unwrap();
    let ours = trace(directory.path(), TracedCase::Ours);
    assert!(ours.writes > 1_000, "{ours:?}");
    assert_eq!((ours.with_marker, ours.temporary), (0, 0), "{ours:?}");

    let files = trace(directory.path(), TracedCase::TemporaryFiles);
    assert!(files.temporary > 100, "{files:?}");
    assert_eq!(files.with_marker, 0, "{files:?}");

    let unencrypted = trace(directory.path(), TracedCase::Unencrypted);
    assert!(unencrypted.temporary_with_marker > 100, "{unencrypted:?}");
}

/// The process that is traced. Without its variables, as in an ordinary test run, it does nothing.
#[test]
fn traced_workload() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let case = std::env::var_os(CASE).unwrap();
    let is = |other: TracedCase| *case == *format!("{other:?}");
    let encryption = if is(TracedCase::Unencrypted) { FileEncryption::None } else { encryption() };
    let (db, _) = open_connection(&path, &encryption, Profile::SERVER, false, true).unwrap();
    if is(TracedCase::TemporaryFiles) {
        db.execute_batch("PRAGMA temp_store = FILE").unwrap();
    }
    // A cache of 200 KB spills everything that can be spilled.
    db.execute_batch("PRAGMA cache_size = -200").unwrap();
    workload(&db);
}

fn workload(db: &Connection) {
    db.execute_batch(&format!(
        "CREATE TABLE m (id INTEGER PRIMARY KEY, x CHECK (x <> 'no'));
         CREATE TABLE log (x);
         CREATE TRIGGER changed AFTER UPDATE ON m BEGIN INSERT INTO log VALUES (old.x); END;
         INSERT INTO m (x) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
             SELECT hex(randomblob(400)) || ' {MARKER}' FROM n;
         CREATE INDEX by_x ON m (x);
         CREATE TEMP TABLE sorted AS SELECT x FROM m ORDER BY substr(x, 100);
         BEGIN; UPDATE m SET x = x || ' {MARKER}'; SAVEPOINT s; DELETE FROM log; ROLLBACK TO s; COMMIT;
         DELETE FROM m WHERE id % 3 = 0;
         VACUUM;"
    ))
    .unwrap();
    // A statement that fails after many changes rolls back from its statement journal.
    db.execute("UPDATE m SET x = CASE WHEN id < 3900 THEN x || 'y' ELSE 'no' END", []).unwrap_err();
}

/// Numbers of writes: all, those with the marker, those to temporary files, and those of both
/// kinds.
#[derive(Debug, Default)]
struct TraceCounts {
    writes: usize,
    with_marker: usize,
    temporary: usize,
    temporary_with_marker: usize,
}

fn trace(directory: &Path, case: TracedCase) -> TraceCounts {
    let trace = directory.join(format!("{case:?}.trace"));
    let database = directory.join(format!("{case:?}.db"));
    let temporary = directory.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let output = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=write,pwrite64,writev,pwritev,pwritev2"])
        .args(["-xx", "-s", "200000", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["plaintext::traced_workload", "--exact", "--quiet"])
        .env(DATABASE, &database)
        .env(CASE, format!("{case:?}"))
        .env("SQLITE_TMPDIR", &temporary)
        .output()
        .expect("this test needs the program strace: apt-get install strace");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(database.exists(), "the workload has run");
    count(&trace, &temporary)
}

fn count(trace: &Path, temporary: &Path) -> TraceCounts {
    let marker = hex(MARKER.as_bytes());
    let temporary = hex(temporary.as_os_str().as_encoded_bytes());
    let mut traced = TraceCounts::default();
    for line in BufReader::new(File::open(trace).unwrap()).lines() {
        let line = line.unwrap();
        // `-y` prints a descriptor as 4<path>, before the data, which is in quotes.
        let (head, data) = line.split_once('"').unwrap_or((&line, ""));
        let (has_marker, is_temporary) = (data.contains(&marker), head.contains(&temporary));
        traced.writes += 1;
        traced.with_marker += usize::from(has_marker);
        traced.temporary += usize::from(is_temporary);
        traced.temporary_with_marker += usize::from(has_marker && is_temporary);
    }
    traced
}

/// Formats bytes as `strace -xx` does.
fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    bytes.concat()
}
