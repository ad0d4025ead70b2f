//! Decides when a database's WAL is moved into its file, so that it stays small and no caller waits
//! long.
//!
//! SQLite itself checkpoints inside the commit that crosses a limit: every caller of that batch
//! waits for two fsyncs and for all pages. Here another connection copies the pages with a passive
//! checkpoint while the writer continues (a *pass*), each time that a certain number of frames was
//! added. A pass can never catch up with the writer, so when the WAL has reached a few times that
//! length, the writer itself copies the few pages that are left and restarts the WAL (a *reset*).
//!
//! A reset is short because all slow work is done before it: passes follow each other, each with a
//! flush of the file, until few pages are left. From the moment that a reset is due until it is
//! done, the writer stalls between its batches, longer the longer the WAL becomes, so that it never
//! outruns the passes. Then it copies the rest while reads continue, and pauses them only to check
//! whether any pages remain.
//!
//! The limit is the profile's `wal_autocheckpoint`; 0 leaves the WAL alone.
//!
//! # Not here
//! - The thread that runs passes → `maintenance/scheduler.rs`. Snapshots that block a reset →
//!   `readers.rs`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::{Result, is_busy, sqlite};
use crate::open::profile;

/// The length of the WAL that makes a reset due, in multiples of the length that makes a pass due.
const PASSES_PER_RESET: u32 = 4;

/// The maximum number of successive passes before a reset: where readers keep pages in the WAL,
/// more passes do not help.
const CLOSING_PASSES_MAX: u32 = 4;

/// The divisor of the limit that gives the number of frames that may be left for a reset.
const RESET_SHARE: u32 = 4;

/// The longest write stall, in multiples of the time that the batch took.
const REST_FACTOR_MAX: u32 = 16;

/// Reads the profile's `wal_autocheckpoint`, in frames.
pub(crate) fn read_limit(connection: &Connection) -> Result<u32> {
    let limit = profile::read(connection, "wal_autocheckpoint");
    let limit = limit.map_err(sqlite("wal_autocheckpoint"))?;
    Ok(limit.parse().expect("SQLite answers with a count"))
}

/// The checkpoint state of one database's WAL. Counts are in frames: pages in the WAL.
pub(crate) struct Checkpointer {
    /// The number of frames that makes a pass due.
    limit: u32,
    frames: AtomicU32,
    /// The number of frames that were in the file after the last pass.
    copied: AtomicU32,
    /// The number of frames that makes a reset due. An attempt that fails because of a long read is
    /// repeated only after as many further frames.
    reset_at: AtomicU32,
    is_pass_due: AtomicBool,
    is_reset_due: AtomicBool,
    /// Whether the last pass was deferred, so that a write stall would be useless.
    is_put_off: AtomicBool,
    /// A lock that each pass holds; `true` once the database is closed.
    is_closed: Mutex<bool>,
    pub(crate) counters: CheckpointCounters,
}

#[derive(Default)]
pub(crate) struct CheckpointCounters {
    pub(crate) frames_max: AtomicU32,
    pub(crate) pauses: AtomicU64,
    pub(crate) longest_pause_us: AtomicU64,
    pub(crate) longest_read_pause_us: AtomicU64,
    pub(crate) copied_with_reads_paused: AtomicU64,
}

impl Checkpointer {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            frames: AtomicU32::new(0),
            copied: AtomicU32::new(0),
            reset_at: AtomicU32::new(limit.saturating_mul(PASSES_PER_RESET)),
            is_pass_due: AtomicBool::new(false),
            is_reset_due: AtomicBool::new(false),
            is_put_off: AtomicBool::new(false),
            is_closed: Mutex::new(false),
            counters: CheckpointCounters::default(),
        }
    }

    /// Records the length of the WAL after a batch. Returns `true` if the caller must schedule a
    /// pass.
    pub(crate) fn after_batch(&self, frames: u32) -> bool {
        let before = self.frames.swap(frames, Ordering::Relaxed);
        if frames < before {
            self.copied.store(0, Ordering::Relaxed);
            self.reset_at.store(self.reset_step(), Ordering::Relaxed);
        }
        self.counters.frames_max.fetch_max(frames, Ordering::Relaxed);
        self.limit > 0
            && self.backlog() >= self.limit
            && !self.is_pass_due.swap(true, Ordering::Relaxed)
    }

    /// Makes a pass and then a reset due, however short the WAL is, because the disk is full.
    /// Returns `true` if the caller must schedule a pass.
    pub(crate) fn request_reset(&self) -> bool {
        self.reset_at.store(0, Ordering::Relaxed);
        self.limit > 0 && !self.is_pass_due.swap(true, Ordering::Relaxed)
    }

    /// Returns the write stall after a batch that took `batch_time`: none unless a reset is due;
    /// then as long as the batch, and longer by as much with each further length of WAL that makes
    /// a reset due.
    pub(crate) fn stall_duration(&self, batch_time: Duration) -> Option<Duration> {
        let overdue = self.overdue()?;
        if self.is_put_off.load(Ordering::Relaxed) {
            return None;
        }
        let steps = overdue / self.reset_step().max(1);
        Some(batch_time * (steps + 1).min(REST_FACTOR_MAX))
    }

    /// Returns the number of frames beyond those that make a reset due, if it is due.
    fn overdue(&self) -> Option<u32> {
        let reset_at = self.reset_at.load(Ordering::Relaxed);
        let frames = self.frames.load(Ordering::Relaxed);
        if self.limit == 0 { None } else { frames.checked_sub(reset_at) }
    }

    /// Copies the WAL into the file while the writer continues, on a connection that `open` opens.
    /// `is_forbidden` is called before each copy, and ends the pass if it returns `true`.
    pub(crate) fn pass<E>(
        &self,
        is_forbidden: impl Fn() -> bool,
        open: impl FnOnce() -> Result<Connection, E>,
    ) -> Result<(), E>
    where
        E: From<rusqlite::Error>,
    {
        let is_closed = self.is_closed.lock().expect("a pass does not panic");
        if *is_closed {
            return Ok(());
        }
        let pass =
            || if is_forbidden() { Ok(()) } else { Ok(self.pass_on(&open()?, is_forbidden)?) };
        let result = pass();
        self.is_pass_due.store(false, Ordering::Relaxed);
        drop(is_closed);
        result
    }

    /// Skips the pass that is due.
    pub(crate) fn defer_pass(&self) {
        self.is_put_off.store(true, Ordering::Relaxed);
        self.is_pass_due.store(false, Ordering::Relaxed);
    }

    fn pass_on(
        &self,
        connection: &Connection,
        is_forbidden: impl Fn() -> bool,
    ) -> rusqlite::Result<()> {
        self.is_put_off.store(false, Ordering::Relaxed);
        for number in 0..CLOSING_PASSES_MAX {
            if is_forbidden() {
                return Ok(());
            }
            self.copy_more(connection)?;
            if number == 0 && self.overdue().is_none() {
                return Ok(());
            }
            sqlite3mc_sys::flush_file(connection)?;
            if self.backlog() <= self.limit / RESET_SHARE {
                break;
            }
        }
        self.is_reset_due.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn copy_more(&self, connection: &Connection) -> rusqlite::Result<()> {
        let CheckpointProgress { frames, copied } = copy(connection)?;
        self.frames.fetch_max(frames, Ordering::Relaxed);
        self.copied.store(copied, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether a reset is due, once for each. Called by the writer before a batch.
    pub(crate) fn take_reset(&self) -> bool {
        self.is_reset_due.load(Ordering::Relaxed)
            && self.is_reset_due.swap(false, Ordering::Relaxed)
    }

    /// Copies the frames that the passes have left, on the writer's own connection, while reads
    /// continue.
    pub(crate) fn catch_up(&self, writer: &Connection) -> rusqlite::Result<()> {
        let CheckpointProgress { frames, copied } = copy(writer)?;
        self.copied.store(copied, Ordering::Relaxed);
        self.reset_at.store(frames.saturating_add(self.reset_step()), Ordering::Relaxed);
        Ok(())
    }

    /// Copies the frames that `catch_up` has left, while reads wait.
    pub(crate) fn catch_up_with_reads_paused(&self, writer: &Connection) -> rusqlite::Result<()> {
        let before = self.copied.load(Ordering::Relaxed);
        let CheckpointProgress { copied, .. } = copy(writer)?;
        self.copied.store(copied, Ordering::Relaxed);
        let held = copied.saturating_sub(before);
        self.counters.copied_with_reads_paused.fetch_add(held.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of frames that are not in the file yet.
    fn backlog(&self) -> u32 {
        let frames = self.frames.load(Ordering::Relaxed);
        frames.saturating_sub(self.copied.load(Ordering::Relaxed))
    }

    fn reset_step(&self) -> u32 {
        self.limit.saturating_mul(PASSES_PER_RESET)
    }

    /// Records for how long a reset paused the writer and the readers.
    pub(crate) fn paused(&self, writer: Duration, readers: Duration) {
        let us = |pause: Duration| u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.counters.pauses.fetch_add(1, Ordering::Relaxed);
        self.counters.longest_pause_us.fetch_max(us(writer), Ordering::Relaxed);
        self.counters.longest_read_pause_us.fetch_max(us(readers), Ordering::Relaxed);
    }

    /// Waits for a running pass, and prevents new ones until the guard is dropped. Returns `None`
    /// if the database is closed.
    pub(crate) fn suspend(&self) -> Option<MutexGuard<'_, bool>> {
        let is_closed = self.is_closed.lock().expect("a pass does not panic");
        (!*is_closed).then_some(is_closed)
    }

    /// Clears the counts, because the database has a new WAL.
    pub(crate) fn restart(&self) {
        self.frames.store(0, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        self.reset_at.store(self.reset_step(), Ordering::Relaxed);
        self.is_reset_due.store(false, Ordering::Relaxed);
    }

    /// Waits for a running pass, and prevents all further ones.
    pub(crate) fn close(&self) {
        *self.is_closed.lock().expect("a pass does not panic") = true;
    }
}

struct CheckpointProgress {
    frames: u32,
    copied: u32,
}

/// Runs one passive checkpoint, which waits for no connection, and copies as far as readers allow.
fn copy(connection: &Connection) -> rusqlite::Result<CheckpointProgress> {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.prepare_cached(sql)?.query_row([], |row| {
        // Both are -1 if there is no WAL.
        let count = |column| row.get(column).map(|count: i64| u32::try_from(count).unwrap_or(0));
        Ok(CheckpointProgress { frames: count(1)?, copied: count(2)? })
    })
}

/// Moves the WAL into the file and truncates it to zero bytes. Returns `false` if a reader prevents
/// that.
pub(crate) fn truncate_wal(db: &Connection) -> Result<bool> {
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    match db.query_row(sql, [], |row| row.get::<_, i64>(0)) {
        Ok(busy) => Ok(busy == 0),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => Err(sqlite("checkpoint")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_rests_while_a_reset_is_due_and_longer_the_longer_the_wal() {
        let checkpoints = Checkpointer::new(10);
        let batch = Duration::from_millis(2);
        let rest = |frames| {
            checkpoints.after_batch(frames);
            checkpoints.stall_duration(batch)
        };
        assert_eq!(rest(39), None);
        assert_eq!(rest(40), Some(batch));
        assert_eq!(rest(120), Some(3 * batch));
        assert_eq!(rest(100_000), Some(16 * batch));
        assert_eq!(rest(2), None, "it was started anew");
    }
}
