//! An SQLite file of a server that does not run.
//!
//! # Invariants
//! - Nothing is written in the file's folder, not even by SQLite: no lock, no recovery.
//! - What a server that was killed has left in a journal or a WAL counts: such a file is copied with
//!   it, and the copy recovered.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use engine::{Encryption, Untouched, open_untouched};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::import::error::Error;

/// What SQLite leaves beside a file that has to be recovered.
const RECOVERED_FROM: [&str; 2] = ["-journal", "-wal"];

pub(super) struct OldFile {
    /// Closed before the copy is removed.
    pub(super) db: Connection,
    _copy: Option<TempDir>,
}

impl OldFile {
    /// `None` if there is no such file.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Error> {
        if !path.try_exists().map_err(Error::io(path))? {
            return Ok(None);
        }
        let has_content = |suffix: &&str| {
            let side_file = with_suffix(path.as_os_str(), suffix);
            fs::metadata(side_file).is_ok_and(|metadata| metadata.len() > 0)
        };
        if RECOVERED_FROM.iter().any(|suffix| has_content(&suffix)) {
            return Self::copy(path).map(Some);
        }
        let opened = open_untouched(path, &Encryption::None, Untouched::Immutable);
        let (db, _) = opened.map_err(Error::old(path))?;
        Ok(Some(Self { db, _copy: None }))
    }

    fn copy(path: &Path) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io(path))?;
        let copy = folder.path().join("copy");
        fs::copy(path, &copy).map_err(Error::io(path))?;
        for suffix in RECOVERED_FROM {
            let side_file = with_suffix(path.as_os_str(), suffix);
            if side_file.try_exists().map_err(Error::io(&side_file))? {
                let copied = fs::copy(&side_file, with_suffix(copy.as_os_str(), suffix));
                copied.map_err(Error::io(&side_file))?;
            }
        }
        let db = Connection::open(&copy).map_err(Error::old(path))?;
        Ok(Self { db, _copy: Some(folder) })
    }
}

fn with_suffix(path: &OsStr, suffix: &str) -> PathBuf {
    let mut path = path.to_owned();
    path.push(suffix);
    path.into()
}
