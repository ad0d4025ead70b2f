//! Puts a checked copy of a database in the place of the original, while nobody has either open.
//!
//! SQLite finds a database's WAL by the database's *name*. A connection that was opened before the
//! swap would read and write the new file's WAL against the old file's pages, and at its closing,
//! alone on a file that nobody else has, it would take itself for the last and delete that WAL. So
//! the swap must be sure that there is no such connection:
//! - a connection in WAL mode holds a shared lock on its file for as long as it lives, so the
//!   exclusive lock ([`ExclusiveLock`]) proves that there is none, in any process;
//! - one that is being opened has the file but no lock yet, so whoever opens a database holds the
//!   directory's lock ([`DirectoryLock`]) shared until then, and the swap holds it alone.
//!
//! # Invariants
//! - At any moment the name stands for the old file, whole, or for the new one, whole.
//! - When the name changes, the old WAL has been moved into the old file and is gone, and the disk
//!   knows that.
//!
//! # Not here
//! - Making the copy, and checking it → `compact_copy.rs`. Who may swap, and when →
//!   `database/replace_file.rs`.
//! - Programs that are not Warren's take no directory lock. `docs/decisions/9-idle-maintenance.md`
//!   says what that means for them.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use crate::clock;
use crate::compact_copy::{CompactCopy, with_suffix};
use crate::error::{Error, Result, io, sqlite};
use crate::profile;

/// The directory of a database, locked with `flock` against swaps, or for one. SQLite's own locks
/// are of another kind and lie on the files. Unlocked when dropped, and by the end of the process.
pub(crate) struct DirectoryLock(#[expect(dead_code, reason = "held for its lock")] File);

impl DirectoryLock {
    /// While a database in it is opened. Waits for a swap, which takes milliseconds. `None`: this
    /// file system has no such locks, so that nobody swaps here either.
    pub(crate) fn shared(database: &Path) -> Result<Option<Self>> {
        let path = directory_of(database);
        let directory = File::open(path).map_err(io(path))?;
        match directory.lock_shared() {
            Ok(()) => Ok(Some(Self(directory))),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(io(path)(error)),
        }
    }

    /// For a swap, or while a database is created. [`Error::Busy`] if others go on opening
    /// databases until then.
    pub(crate) fn exclusive(database: &Path, until: Instant) -> Result<Self> {
        let path = directory_of(database);
        let directory = File::open(path).map_err(io(path))?;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Self(directory)),
                Err(TryLockError::Error(error)) => return Err(io(path)(error)),
                Err(TryLockError::WouldBlock) if clock::now() >= until => return Err(Error::Busy),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
    }
}

/// A connection that has its file for itself: no other, in any process, can read it, and in WAL
/// mode none has it open. Given back when dropped.
pub(crate) struct ExclusiveLock<'a> {
    db: &'a Connection,
    busy_timeout_ms: u64,
    is_wal: bool,
}

impl<'a> ExclusiveLock<'a> {
    /// [`Error::Busy`] if there is another connection until then.
    pub(crate) fn acquire(db: &'a Connection, until: Instant) -> Result<Self> {
        loop {
            match Self::try_acquire(db) {
                Err(Error::Busy) if clock::now() < until => thread::yield_now(),
                taken => return taken,
            }
        }
    }

    fn try_acquire(db: &'a Connection) -> Result<Self> {
        let number = |name| profile::read(db, name).map_err(sqlite(name));
        let busy_timeout_ms = number("busy_timeout")?.parse().expect("SQLite answers with a count");
        let is_wal = number("journal_mode")? == "wal";
        let alone = Self { db, busy_timeout_ms, is_wal };
        db.busy_timeout(Duration::ZERO).map_err(sqlite("busy_timeout"))?;
        // In this mode the locks that the transaction takes stay.
        let sql = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK";
        match db.execute_batch(sql) {
            Ok(()) => Ok(alone),
            Err(error) if is_busy(&error) => Err(Error::Busy),
            Err(error) => Err(sqlite("exclusive lock")(error)),
        }
    }

    /// `PRAGMA data_version`: another than before if another connection has committed meanwhile.
    pub(crate) fn data_version(&self) -> Result<i64> {
        data_version(self.db)
    }

    /// Moves all of the WAL into the file.
    pub(crate) fn empty_wal(&self) -> Result<()> {
        if !self.is_wal || truncate(self.db)? { Ok(()) } else { Err(Error::Busy) }
    }

    /// Gives the file's name to the copy. Whatever comes of it, this connection can only be closed
    /// afterwards. The WAL must be empty.
    pub(crate) fn replace_by(self, copy: CompactCopy, _directory: &DirectoryLock) -> Result<()> {
        let original = copy.original().to_owned();
        let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        self.db.set_db_config(no_checkpoint, true).map_err(sqlite("close"))?;
        // It has no locks to give back that anybody waits for, and no files that still have names.
        std::mem::forget(self);
        for suffix in ["-wal", "-shm"] {
            remove_if_there(&with_suffix(&original, suffix))?;
        }
        // Before the name changes: the new file must never stand beside the old WAL.
        sync_directory(&original)?;
        let made = copy.finish();
        fs::rename(&made, &original).map_err(io(&original))?;
        sync_directory(&original)
    }
}

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        // The locks go at the end of the next transaction.
        let sql = "PRAGMA locking_mode = NORMAL; BEGIN IMMEDIATE; ROLLBACK";
        let given_back = self.db.execute_batch(sql);
        let restored = self.db.busy_timeout(Duration::from_millis(self.busy_timeout_ms));
        if let Err(error) = given_back.and(restored) {
            tracing::debug!(%error, "giving a file back");
        }
    }
}

/// Moves the WAL into the file and cuts it to nothing. `false`: a reader hinders it.
pub(crate) fn truncate(db: &Connection) -> Result<bool> {
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    match db.query_row(sql, [], |row| row.get::<_, i64>(0)) {
        Ok(busy) => Ok(busy == 0),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => Err(sqlite("checkpoint")(error)),
    }
}

pub(crate) fn data_version(db: &Connection) -> Result<i64> {
    db.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(sqlite("data_version"))
}

pub(crate) fn sync_directory(database: &Path) -> Result<()> {
    let directory = directory_of(database);
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io(directory))
}

pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether the file system has no locks of this kind. Anything else, as too few descriptors, passes.
pub(crate) fn is_unsupported(error: &std::io::Error) -> bool {
    use rustix::io::Errno;

    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOLCK, Errno::INVAL];
    unsupported.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
