//! Opens an SQLite file of a server that is not running.
//!
//! # Invariants
//! - Nothing is written in the file's directory, not even by SQLite: no lock, no recovery.
//! - The journal or WAL that a killed server left behind counts: it is recovered in memory.

use std::path::Path;

use engine::{FileEncryption, ReadOnlyMode, open_read_only};
use rusqlite::Connection;

use crate::import::error::ImportError;

pub(super) struct OldFile {
    pub(super) db: Connection,
}

impl OldFile {
    /// Opens a file; `None` if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ImportError> {
        if !path.try_exists().map_err(ImportError::io(path))? {
            return Ok(None);
        }
        let opened = open_read_only(path, &FileEncryption::None, ReadOnlyMode::Overlay);
        let (db, _) = opened.map_err(ImportError::old(path))?;
        Ok(Some(Self { db }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Kills a program after `work` and returns the number of rows that are then read from its
    /// file.
    fn rows_after_a_kill(journal_mode: &str, work: &str) -> i64 {
        let (lived, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let db = Connection::open(lived.path().join("a.sqlite")).unwrap();
        db.pragma_update(None, "journal_mode", journal_mode).unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        db.execute_batch(work).unwrap();
        for path in files(lived.path()).keys() {
            fs::copy(path, left.path().join(path.file_name().unwrap())).unwrap();
        }
        let before = files(left.path());
        let path = left.path().join("a.sqlite");
        let old = OldFile::open(&path).unwrap().unwrap();
        let rows = old.db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        drop(old);
        assert_eq!(files(left.path()), before);
        rows
    }

    #[test]
    fn what_a_killed_program_has_left_is_read_and_stays() {
        let spilled = "PRAGMA cache_size = 1; BEGIN;
            WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000)
            INSERT INTO t SELECT randomblob(100) FROM n";
        // Uncommitted rows do not count, though their pages are in the file.
        assert_eq!(rows_after_a_kill("delete", spilled), 0);
        assert_eq!(rows_after_a_kill("delete", "INSERT INTO t VALUES (1)"), 1);
        assert_eq!(rows_after_a_kill("wal", "INSERT INTO t VALUES (1), (2)"), 2);
    }

    #[test]
    fn a_file_that_is_missing_or_no_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sqlite");
        assert!(OldFile::open(&path).unwrap().is_none());
        fs::write(&path, "no database".repeat(100)).unwrap();
        let count = OldFile::open(&path).map(|old| {
            let db = old.unwrap().db;
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
        });
        assert!(!matches!(count, Ok(Ok(_))));
    }
}
