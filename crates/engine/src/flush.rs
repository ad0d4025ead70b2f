//! Brings what was committed to the disk, beside the writer.
//!
//! A commit that flushes the WAL itself (`synchronous=FULL`) keeps the writer waiting for the disk.
//! Here it commits without, and another thread flushes the WAL and then answers the callers, of all
//! batches that have come since its last flush, while the writer runs the next.
//!
//! # Invariants
//! - A caller who asked for [`crate::Durability::Disk`] hears `Ok` only after a flush that began
//!   after its commit.
//! - A flush that failed poisons the database: nobody knows what of the WAL is on the disk.
//!
//! # Not here
//! - Rollback journals, and profiles with `synchronous` FULL or above: there the commit flushes →
//!   `writer.rs`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{Result, io};
use crate::swap::sync_directory;

/// A database's WAL, as a file to flush.
pub(crate) struct WalFile {
    path: PathBuf,
    /// Opened by the first flush, when a commit has made it. It holds no locks, so a descriptor of
    /// our own does SQLite's no harm, and it stays the same file until the database gets another.
    /// One flush at a time runs for a database, so nobody waits for this lock.
    file: Mutex<Option<File>>,
}

impl WalFile {
    pub(crate) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: Mutex::default() }
    }

    /// Returns when the disk has what the file held.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut file = self.file.lock().expect("no code panics while it holds this lock");
        let file = match &mut *file {
            Some(file) => file,
            file => file.insert(self.open()?),
        };
        file.sync_data().map_err(io(&self.path))
    }

    /// The database has a new WAL of the same name.
    pub(crate) fn forget(&self) {
        *self.file.lock().expect("no code panics while it holds this lock") = None;
    }

    fn open(&self) -> Result<File> {
        let file = File::open(&self.path).map_err(io(&self.path))?;
        // A file that a power loss takes out of its directory holds nothing.
        sync_directory(&self.path)?;
        Ok(file)
    }
}
