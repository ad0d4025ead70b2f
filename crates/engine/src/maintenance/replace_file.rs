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
//! - Programs that are not Warren's take no directory lock.
//!   `docs/internals/decisions/9-idle-maintenance.md` says what that means for them.

use std::fs::{self};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::compact_copy::CompactCopy;
use crate::checkpoint::truncate_wal;
use crate::error::{Error, Result, io, is_busy, sqlite};
use crate::open::profile;
use crate::system::clock;
use crate::system::directory::{directory_of, sync_directory};
use crate::system::directory_lock::DirectoryLock;
use crate::system::side_files::{remove_if_there, side_file_path};

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
        if !self.is_wal || truncate_wal(self.db)? { Ok(()) } else { Err(Error::Busy) }
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
            remove_if_there(&side_file_path(&original, suffix))?;
        }
        // Before the name changes: the new file must never stand beside the old WAL.
        sync_directory(directory_of(&original))?;
        let made = copy.finish();
        fs::rename(&made, &original).map_err(io(&original))?;
        sync_directory(directory_of(&original))
    }
}

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        // The locks go at the end of the next transaction.
        let sql = "PRAGMA locking_mode = NORMAL; BEGIN IMMEDIATE; ROLLBACK";
        let given_back = self.db.execute_batch(sql);
        let restored = self.db.busy_timeout(Duration::from_millis(self.busy_timeout_ms));
        if let Err(error) = given_back.and(restored) {
            tracing::debug!(%error, "cannot release an exclusive lock");
        }
    }
}

pub(crate) fn data_version(db: &Connection) -> Result<i64> {
    db.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(sqlite("data_version"))
}
