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
use std::sync::OnceLock;

use crate::error::{Result, io};

/// A database's WAL, as a file to flush.
pub(crate) struct WalFile {
    path: PathBuf,
    /// Opened by the first flush, when a commit has made it. It holds no locks, so a descriptor of
    /// our own does SQLite's no harm, and it stays the same file while the database is open.
    file: OnceLock<File>,
}

impl WalFile {
    pub(crate) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: OnceLock::new() }
    }

    /// Returns when the disk has what the file held.
    pub(crate) fn flush(&self) -> Result<()> {
        let file = if let Some(file) = self.file.get() { file } else { self.open()? };
        file.sync_data().map_err(io(&self.path))
    }

    fn open(&self) -> Result<&File> {
        let file = File::open(&self.path).map_err(io(&self.path))?;
        // A file that a power loss takes out of its directory holds nothing.
        let directory = self.path.parent().expect("a canonical path of a file");
        File::open(directory).and_then(|it| it.sync_all()).map_err(io(directory))?;
        Ok(self.file.get_or_init(|| file))
    }
}
