//! Recovers a database that refuses writes, automatically.
//!
//! After a failed commit, flush or checkpoint, the content of the disk is uncertain, and the kernel
//! considers pages that it could not write as written: another fsync of the same file proves
//! nothing. So recovery does what a restart would do: it closes every connection without a
//! checkpoint, recovers the WAL by its checksums, and writes its pages into the file again, whose
//! fsync is then reliable. Reads continue until that moment, and wait during it.
//!
//! # Invariants
//! - A database accepts writes again only after its WAL was recovered while no other connection had
//!   the file open, and moved into the file by a checkpoint with its fsyncs.
//!
//! # Not here
//! - Recovering what an earlier process has left → `open/writable.rs`. The schedule of attempts →
//!   `write/poison.rs`. Repairing damage, at the same moment → `repair.rs`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::idle_maintenance::WriterPause;
use super::replace_file::FlushPause;
use super::{Database, EngineContext};
use crate::error::{Error, Result};
use crate::open::{self, WalRecovery};
use crate::system::clock;
use crate::system::directory_lock::DirectoryLock;
use crate::write::writer::Writer;

/// The time that recovery waits for the running batch and the running flush.
const TURN_WAIT_MAX: Duration = Duration::from_secs(1);
const TURN_POLL: Duration = Duration::from_millis(1);

impl Database {
    /// Refuses writes until the database has recovered. Returns the first cause.
    pub(super) fn poison(&self, cause: impl Into<Arc<str>>) -> Arc<str> {
        let (cause, is_first) = self.poison.set(cause.into());
        if is_first {
            let path = self.path.display();
            tracing::error!(%path, %cause, "a database refuses writes until it has recovered");
            self.recover_later();
        }
        cause
    }

    /// Reacts to an error outside a batch: an I/O error poisons the database, and a full disk
    /// releases the reserve.
    pub(super) fn note_failure(&self, what: &str, error: &Error) {
        if error.is_io() {
            self.poison(format!("{what}: {error}"));
        } else if matches!(error, Error::DiskFull { .. }) {
            self.release_reserve();
        }
    }

    /// Releases the disk reserve for a checkpoint, because the disk is full.
    pub(super) fn release_reserve(&self) {
        let EngineContext { scheduler, reserve, .. } = &self.context;
        if reserve.release() {
            scheduler.refill(Arc::clone(reserve));
        }
        if self.checkpoints.request_reset() {
            scheduler.checkpoint(Weak::clone(&self.this));
        }
    }

    /// Tries to recover. Called by the scheduler's thread.
    pub(crate) fn recover(&self) {
        if !self.poison.is_set() {
            return;
        }
        let path = self.path.display();
        match self.try_recover() {
            Ok(()) => tracing::info!(%path, "the database has recovered and accepts writes"),
            Err(Error::Closed) => {}
            Err(error) => {
                tracing::warn!(%path, %error, "recovery failed; it will be tried again");
                self.recover_later();
            }
        }
    }

    fn recover_later(&self) {
        let time = clock::now() + self.poison.next_delay();
        self.context.scheduler.recover_at(time, Weak::clone(&self.this));
    }

    pub(super) fn try_recover(&self) -> Result<()> {
        let _run = self.maintenance.begin().ok_or(Error::Closed)?;
        let _passes = self.checkpoints.suspend().ok_or(Error::Closed)?;
        let _turn = self.wait_for(|| self.queue.try_schedule().then(|| WriterPause(self)))?;
        let _flushes = self.wait_for(|| self.flushes.try_schedule().then(|| FlushPause(self)))?;
        let _held = self.pause_readers();
        if !self.readers.close_idle() {
            // A long read has the file open.
            return Err(Error::Busy);
        }
        let mut slot = self.writer();
        if let Some(writer) = slot.take() {
            writer.close_as_is()?;
        }
        let mut no_swap = DirectoryLock::shared(&self.path)?;
        let is_damaged = self.damage.description().is_some();
        match open::recover_abandoned_wal(&self.path, &self.encryption, self.cipher) {
            Ok(WalRecovery::Recovered) => {}
            Ok(WalRecovery::InUse) => return Err(Error::Busy),
            // The WAL is quarantined together with the file.
            Err(error) if is_damaged && error.is_damage() => {}
            Err(error) => return Err(error),
        }
        if is_damaged {
            drop(no_swap.take());
            self.repair()?;
        }
        *slot = Some(self.open_writer()?);
        drop(no_swap);
        self.poison.clear();
        Ok(())
    }

    /// Opens a writer on the file that has the database's name now.
    pub(super) fn open_writer(&self) -> Result<Writer> {
        let connection =
            open::connect(&self.path, &self.encryption, self.cipher, self.profile, false)?;
        open::check_writable(&self.path, &connection)?;
        let writer = Writer::new(connection, self.context.cache_total.share())?;
        if let Some(wal) = &self.wal_file {
            wal.reopen()?;
        }
        self.checkpoints.restart();
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(writer)
    }

    /// Calls `begin` until it returns a turn, while others may get theirs before.
    fn wait_for<T>(&self, begin: impl Fn() -> Option<T>) -> Result<T> {
        let until = clock::now() + TURN_WAIT_MAX;
        loop {
            match begin() {
                Some(turn) => return Ok(turn),
                None if self.maintenance.is_closing() => return Err(Error::Closed),
                None if clock::now() >= until => return Err(Error::Busy),
                None => thread::park_timeout(TURN_POLL),
            }
        }
    }
}
