//! Flushes committed transactions to the disk, on a thread other than the writer's.
//!
//! A commit that flushes the WAL itself (`synchronous=FULL`) makes the writer wait for the disk.
//! Here the commit does not flush: another thread flushes the WAL and then notifies the callers of
//! all batches that have arrived since its last flush, while the writer runs the next batch.
//!
//! # Invariants
//! - A caller who asked for [`crate::Durability::Disk`] receives `Ok` only after a flush that began
//!   after its commit: the answer requires a [`FlushProof`], which only a flush creates.
//! - A failed flush poisons the database, because it is unknown which part of the WAL is on the
//!   disk.
//! - A flush opens no file. A process that is short of descriptors may fail to open a database, but
//!   never to flush one.
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

/// Proof that the content that the WAL had when the flush began is on the disk.
pub(crate) struct FlushProof(());

/// The WAL of a database, opened as a file for flushes.
pub(crate) struct WalFile {
    database: PathBuf,
    path: PathBuf,
    /// Only one flush of a database runs at a time, so no flush waits for this lock.
    files: Mutex<WalDescriptors>,
}

struct WalDescriptors {
    /// SQLite holds no locks on the WAL, so a descriptor of our own does no harm. The descriptor
    /// refers to the same file until the database gets another WAL.
    wal: Arc<File>,
    gate: Arc<WalLock>,
    /// The directory of the WAL, until the first flush has flushed it, too: a power loss could
    /// otherwise remove the file from its directory, and its content would be lost.
    directory: Option<File>,
}

impl WalFile {
    /// Opens the WAL of an open database in WAL mode, for which SQLite creates the file with the
    /// first read.
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let path = side_file_path(database, "-wal");
        let files = Mutex::new(WalDescriptors::open(database, &path)?);
        Ok(Self { database: database.to_owned(), path, files })
    }

    /// Opens the WAL again after the database got another one of the same name.
    pub(crate) fn reopen(&self) -> Result<()> {
        let files = WalDescriptors::open(&self.database, &self.path)?;
        *self.files.lock().expect(UNPOISONED) = files;
        Ok(())
    }

    /// Locks the WAL before it is moved into the database file. Returns `None` while both are
    /// copied.
    pub(crate) fn checkpoint_guard(&self) -> Option<CheckpointGuard> {
        self.gate().try_lock_for_checkpoint()
    }

    /// Returns the command and process of a stalled copy that has blocked a checkpoint.
    pub(crate) fn stalled_copy(&self) -> Option<Arc<str>> {
        self.gate().stalled_copy()
    }

    fn gate(&self) -> Arc<WalLock> {
        Arc::clone(&self.files.lock().expect(UNPOISONED).gate)
    }

    /// Flushes the WAL, and returns when its content is on the disk.
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
        // The file is opened for writing, because NFS has no exclusive lock otherwise.
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
