//! Compacts a database's file: writes a copy, which replaces the file while no connection has it
//! open.
//!
//! The copy is created while writes and reads continue; if anything is written, the copy is useless
//! and is removed. Then, for some milliseconds, this code holds the writer's turn, the flushers'
//! turn and all readers, and has exclusive access to the file.
//!
//! # Invariants
//! - Nothing is committed between the start of the copy and the replacement.
//! - After the replacement, the writer and all readers have the file open that has the name then,
//!   or the database is poisoned.
//!
//! # Not here
//! - The reasons for these precautions → `maintenance/replace_file.rs`.

use rusqlite::Connection;

use super::Database;
use crate::error::{Error, Result};
use crate::maintenance::PageCounts;
use crate::maintenance::compact_copy::{CompactCopy, OpenParams};
use crate::maintenance::replace_file::{self, ExclusiveLock};
use crate::readers::SNAPSHOT_AGE_MAX;
use crate::system::clock;
use crate::system::directory_lock::DirectoryLock;

/// The version of the file when the copy was started.
#[derive(Clone, Copy)]
pub(super) struct FileVersion {
    pub(super) batches: u64,
    /// The `data_version` of the writer's connection, which shows the writes of other connections.
    data_version: i64,
}

/// The flushers' turn: no part of the WAL is being flushed while it is held.
pub(super) struct FlushPause<'a>(pub(super) &'a Database);

impl Drop for FlushPause<'_> {
    fn drop(&mut self) {
        if self.0.flushes.unschedule() {
            let database = self.0.this.upgrade().expect("who maintains it holds it");
            self.0.context.flush_queue.push(database);
        }
    }
}

impl Database {
    /// Creates a compact copy of the content that `db` reads, while writes and reads continue.
    pub(super) fn compact(
        &self,
        db: &Connection,
        batches: u64,
    ) -> Result<(CompactCopy, FileVersion)> {
        let data_version = self.data_version()?;
        let original =
            OpenParams { path: &self.path, encryption: &self.encryption, cipher: self.cipher };
        match CompactCopy::make(db, original, |copy| self.interrupt(copy, batches)) {
            Ok(copy) => Ok((copy, FileVersion { batches, data_version })),
            // Another connection wrote between the copy and its comparison.
            Err(Error::CopyDiffers { .. }) if self.data_version()? != data_version => {
                Err(Error::Busy)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the `data_version` of the writer's connection, which changes when another one has
    /// written.
    fn data_version(&self) -> Result<i64> {
        let _turn = self.pause_writer().ok_or(Error::Busy)?;
        let slot = self.writer();
        replace_file::data_version(slot.as_ref().ok_or(Error::Closed)?.connection())
    }

    /// Replaces the file by the copy, if nothing was written since. Returns the page counts of the
    /// new file.
    pub(super) fn replace_file(&self, copy: CompactCopy, seen: FileVersion) -> Result<PageCounts> {
        let _pass = self.checkpoint_guard().ok_or(Error::Busy)?;
        // This comes first, because a pass may be long and the turn must be short.
        let _passes = self.checkpoints.suspend().ok_or(Error::Closed)?;
        let _turn = self.pause_writer().ok_or(Error::Busy)?;
        let _flushes = self.flushes.try_schedule().then(|| FlushPause(self)).ok_or(Error::Busy)?;
        self.check_unpoisoned()?;
        let _held = self.pause_readers();
        if !self.readers.close_idle() {
            // A long read has the old file open, and would keep it.
            return Err(Error::Busy);
        }
        let mut slot = self.writer();
        let writer = slot.as_ref().ok_or(Error::Closed)?;
        let directory = DirectoryLock::exclusive(&self.path, clock::now() + SNAPSHOT_AGE_MAX)?;
        // No connection is opened from here on; one that was open for a moment is closed by then.
        let alone = ExclusiveLock::acquire(writer.connection(), clock::now() + SNAPSHOT_AGE_MAX)?;
        if self.is_preempted(seen.batches) || alone.data_version()? != seen.data_version {
            return Err(Error::Busy);
        }
        alone.empty_wal()?;
        let replaced = alone.replace_by(copy, &directory);
        // The old writer still has locks on the old file, which may have kept its name.
        drop(slot.take());
        drop(directory);
        match self.open_writer() {
            Ok(writer) => *slot = Some(writer),
            Err(error) => {
                self.poison(format!("opening after compaction: {error}"));
                return Err(error);
            }
        }
        replaced?;
        self.measure_on(slot.as_ref().expect("just opened").connection())
    }
}
