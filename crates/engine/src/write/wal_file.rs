//! Brings what was committed to the disk, beside the writer.
//!
//! A commit that flushes the WAL itself (`synchronous=FULL`) keeps the writer waiting for the disk.
//! Here it commits without, and another thread flushes the WAL and then answers the callers, of all
//! batches that have come since its last flush, while the writer runs the next.
//!
//! # Invariants
//! - A caller who asked for [`crate::Durability::Disk`] hears `Ok` only after a flush that began
//!   after its commit: the answer needs a [`FlushProof`], which nothing else makes.
//! - A flush that failed poisons the database: nobody knows what of the WAL is on the disk.
//! - Nothing is opened for a flush. A process that is short of descriptors fails to open a
//!   database, and never to flush it.
//!
//! # Not here
//! - Rollback journals, and profiles with `synchronous` FULL or above: there the commit flushes →
//!   `writer.rs`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::backup::{CheckpointGuard, WalLock};
use crate::error::{Result, io};
use crate::system::directory::directory_of;
use crate::system::side_files::side_file_path;

/// Proof that the WAL, as it was when the flush began, is on the disk.
pub(crate) struct FlushProof(());

/// A database's WAL, as a file to flush.
pub(crate) struct WalFile {
    database: PathBuf,
    path: PathBuf,
    /// One flush at a time runs for a database, so nobody waits for this lock.
    files: Mutex<WalDescriptors>,
}

struct WalDescriptors {
    /// SQLite has no locks on it, so a descriptor of our own does no harm; and it stays the same
    /// file until the database gets another.
    wal: Arc<File>,
    gate: Arc<WalLock>,
    /// Until its first flush: a file that a power loss takes out of its directory holds nothing.
    directory: Option<File>,
}

impl WalFile {
    /// The WAL of an open database in WAL mode: SQLite makes the file with the first read.
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let path = side_file_path(database, "-wal");
        let files = Mutex::new(WalDescriptors::open(database, &path)?);
        Ok(Self { database: database.to_owned(), path, files })
    }

    /// The database has another WAL of the same name.
    pub(crate) fn reopen(&self) -> Result<()> {
        let files = WalDescriptors::open(&self.database, &self.path)?;
        *self.files.lock().expect(UNPOISONED) = files;
        Ok(())
    }

    /// Before the WAL is moved into its file. `None`: a copy of both is being made.
    pub(crate) fn checkpoint_guard(&self) -> Option<CheckpointGuard> {
        self.gate().try_lock_for_checkpoint()
    }

    /// The command and process of a copy that was in the way of a checkpoint, and has stalled.
    pub(crate) fn stalled_copy(&self) -> Option<Arc<str>> {
        self.gate().stalled_copy()
    }

    fn gate(&self) -> Arc<WalLock> {
        Arc::clone(&self.files.lock().expect(UNPOISONED).gate)
    }

    /// Returns when the disk has what the file held.
    pub(crate) fn flush(&self) -> Result<FlushProof> {
        let mut files = self.files.lock().expect(UNPOISONED);
        if let Some(directory) = &files.directory {
            directory.sync_all().map_err(io(directory_of(&self.path)))?;
            files.directory = None;
        }
        files.wal.sync_data().map_err(io(&self.path))?;
        Ok(FlushProof(()))
    }
}

impl WalDescriptors {
    fn open(database: &Path, path: &Path) -> Result<Self> {
        let directory = directory_of(path);
        // For writing: on NFS there is no exclusive lock without.
        let wal = File::options().read(true).write(true).open(path).map_err(io(path))?;
        let wal = Arc::new(wal);
        Ok(Self {
            gate: WalLock::new(database, Arc::clone(&wal)),
            wal,
            directory: Some(File::open(directory).map_err(io(directory))?),
        })
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";
