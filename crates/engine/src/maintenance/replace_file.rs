//! Replaces a database's file by a checked copy, while no connection has either open.
//!
//! SQLite finds a database's WAL by the database's *name*. A connection that was opened before the
//! replacement would read and write the new file's WAL with the old file's pages, and on closing,
//! alone on a file that no other connection has, it would consider itself the last one and delete
//! that WAL. So the replacement must ensure that there is no such connection:
//! - a connection in WAL mode holds a shared lock on its file for as long as it lives, so the
//!   exclusive lock ([`ExclusiveLock`]) proves that there is none, in any process;
//! - one that is being opened has the file but no lock yet, so every opener holds the directory's
//!   lock ([`DirectoryLock`]) shared until then, and the replacement holds it alone.
//!
//! # Invariants
//! - At any moment, the name refers to the complete old file or to the complete new one.
//! - When the name changes, the old WAL has been moved into the old file and removed, and its
//!   removal is on the disk.
//!
//! # Not here
//! - Creating and checking the copy → `compact_copy.rs`. The time of a replacement, and its
//!   conditions → `database/replace_file.rs`.
//! - Programs other than Warren take no directory lock.
//!   `docs/internals/decisions/9-idle-maintenance.md` describes the consequences for them.

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

/// A connection with exclusive access to its file: no other, in any process, can read it, and in
/// WAL mode none has it open. The access ends when this is dropped.
pub(crate) struct ExclusiveLock<'a> {
    db: &'a Connection,
    busy_timeout_ms: u64,
    is_wal: bool,
}

impl<'a> ExclusiveLock<'a> {
    /// Acquires exclusive access. Returns [`Error::Busy`] if there is another connection until
    /// `until`.
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
        // In this mode, the connection keeps the locks that the transaction takes.
        let sql = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK";
        match db.execute_batch(sql) {
            Ok(()) => Ok(alone),
            Err(error) if is_busy(&error) => Err(Error::Busy),
            Err(error) => Err(sqlite("exclusive lock")(error)),
        }
    }

    /// Returns `PRAGMA data_version`, which changes when another connection has committed.
    pub(crate) fn data_version(&self) -> Result<i64> {
        data_version(self.db)
    }

    /// Moves all of the WAL into the file.
    pub(crate) fn empty_wal(&self) -> Result<()> {
        if !self.is_wal || truncate_wal(self.db)? { Ok(()) } else { Err(Error::Busy) }
    }

    /// Gives the file's name to the copy. Whatever the result, this connection can only be closed
    /// afterwards. The WAL must be empty.
    pub(crate) fn replace_by(self, copy: CompactCopy, _directory: &DirectoryLock) -> Result<()> {
        let original = copy.original().to_owned();
        let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        self.db.set_db_config(no_checkpoint, true).map_err(sqlite("close"))?;
        // The locks need no release, because no connection waits for them and the files lose their
        // names.
        std::mem::forget(self);
        for suffix in ["-wal", "-shm"] {
            remove_if_there(&side_file_path(&original, suffix))?;
        }
        // The removal is flushed before the name changes: the new file must never be next to the
        // old WAL.
        sync_directory(directory_of(&original))?;
        let made = copy.finish();
        fs::rename(&made, &original).map_err(io(&original))?;
        sync_directory(directory_of(&original))
    }
}

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        // The locks are released at the end of the next transaction.
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
