//! When a database's WAL is moved into its file, so that it stays small and nobody waits long.
//!
//! SQLite by itself checkpoints inside the commit that crosses a limit: every caller of that batch
//! waits for two fsyncs and for all pages. Here another connection copies the pages while the
//! writer goes on (a *pass*), each time that so many frames have come. What it can never do is
//! catch up, so when the WAL has reached a few times that length, the writer itself copies the
//! little that is left and starts it anew (a *reset*).
//!
//! A reset is short because all that takes long is done before it: passes follow on each other,
//! each with a flush of the file, until little is left. From the moment that a reset is due until it
//! is done the writer stalls between its batches, longer the longer the WAL becomes, so that it
//! never outruns the passes. Then it copies what is left while reads go on, and holds them only to
//! look whether anything remains.
//!
//! The limit is the profile's `wal_autocheckpoint`; 0 leaves the WAL alone.
//!
//! # Not here
//! - The thread that passes run on → `maintenance/scheduler.rs`. Snapshots that hinder a reset →
//!   `readers.rs`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::{Result, is_busy, sqlite};
use crate::open::profile;

/// A reset is due when the WAL is so many times as long as what makes a pass due.
const PASSES_PER_RESET: u32 = 4;

/// Passes that follow on each other before a reset, at most: where readers keep pages in the WAL,
/// more passes do not help.
const CLOSING_PASSES_MAX: u32 = 4;

/// A reset may copy this share of what makes a pass due.
const RESET_SHARE: u32 = 4;

/// The writer stalls at most so many times as long as its batch took.
const REST_FACTOR_MAX: u32 = 16;

/// The profile's `wal_autocheckpoint`, in frames.
pub(crate) fn read_limit(connection: &Connection) -> Result<u32> {
    let limit = profile::read(connection, "wal_autocheckpoint");
    let limit = limit.map_err(sqlite("wal_autocheckpoint"))?;
    Ok(limit.parse().expect("SQLite answers with a count"))
}

/// The state of one database's WAL. Counts are in frames: pages in the WAL.
pub(crate) struct Checkpointer {
    /// Frames that make a pass due.
    limit: u32,
    frames: AtomicU32,
    /// Frames that the last pass found in the file.
    copied: AtomicU32,
    /// Frames that make a reset due. An attempt that fails, because of a long read, is made again
    /// only when as many more have come.
    reset_at: AtomicU32,
    is_pass_due: AtomicBool,
    is_reset_due: AtomicBool,
    /// The last pass was put off: the writer stalls for nothing.
    is_put_off: AtomicBool,
    /// Taken for a pass; true once the database is closed.
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

    /// Notes how long the WAL is after a batch. `true`: a pass is to be scheduled.
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

    /// Makes a pass and then a reset due, however short the WAL is: the disk is full. `true`: a pass
    /// is to be scheduled.
    pub(crate) fn request_reset(&self) -> bool {
        self.reset_at.store(0, Ordering::Relaxed);
        self.limit > 0 && !self.is_pass_due.swap(true, Ordering::Relaxed)
    }

    /// How long the writer should rest after a batch that took `batch_time`: not at all, unless a
    /// reset is due; then as long as the batch, and longer by as much with each further length of
    /// WAL that makes a reset due.
    pub(crate) fn stall_duration(&self, batch_time: Duration) -> Option<Duration> {
        let overdue = self.overdue()?;
        if self.is_put_off.load(Ordering::Relaxed) {
            return None;
        }
        let steps = overdue / self.reset_step().max(1);
        Some(batch_time * (steps + 1).min(REST_FACTOR_MAX))
    }

    /// Frames beyond those that make a reset due.
    fn overdue(&self) -> Option<u32> {
        let reset_at = self.reset_at.load(Ordering::Relaxed);
        let frames = self.frames.load(Ordering::Relaxed);
        if self.limit == 0 { None } else { frames.checked_sub(reset_at) }
    }

    /// Copies what the WAL holds, on a connection that `open` makes, while the writer goes on; until
    /// `is_forbidden`, which is asked before each copying.
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

    /// Makes no pass this time.
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

    /// Is a reset due? Asked by the writer before a batch; once for each.
    pub(crate) fn take_reset(&self) -> bool {
        self.is_reset_due.load(Ordering::Relaxed)
            && self.is_reset_due.swap(false, Ordering::Relaxed)
    }

    /// Copies on the writer's own connection what the passes have left, while reads go on.
    pub(crate) fn catch_up(&self, writer: &Connection) -> rusqlite::Result<()> {
        let CheckpointProgress { frames, copied } = copy(writer)?;
        self.copied.store(copied, Ordering::Relaxed);
        self.reset_at.store(frames.saturating_add(self.reset_step()), Ordering::Relaxed);
        Ok(())
    }

    /// Copies what is left even then, while reads wait.
    pub(crate) fn catch_up_with_reads_paused(&self, writer: &Connection) -> rusqlite::Result<()> {
        let before = self.copied.load(Ordering::Relaxed);
        let CheckpointProgress { copied, .. } = copy(writer)?;
        self.copied.store(copied, Ordering::Relaxed);
        let held = copied.saturating_sub(before);
        self.counters.copied_with_reads_paused.fetch_add(held.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Frames that are not in the file yet.
    fn backlog(&self) -> u32 {
        let frames = self.frames.load(Ordering::Relaxed);
        frames.saturating_sub(self.copied.load(Ordering::Relaxed))
    }

    fn reset_step(&self) -> u32 {
        self.limit.saturating_mul(PASSES_PER_RESET)
    }

    /// Notes for how long a reset kept the writer from its work, and readers from theirs.
    pub(crate) fn paused(&self, writer: Duration, readers: Duration) {
        let us = |pause: Duration| u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.counters.pauses.fetch_add(1, Ordering::Relaxed);
        self.counters.longest_pause_us.fetch_max(us(writer), Ordering::Relaxed);
        self.counters.longest_read_pause_us.fetch_max(us(readers), Ordering::Relaxed);
    }

    /// Waits for a pass that is under way, and lets none begin until the guard is dropped. `None`:
    /// the database is closed.
    pub(crate) fn suspend(&self) -> Option<MutexGuard<'_, bool>> {
        let is_closed = self.is_closed.lock().expect("a pass does not panic");
        (!*is_closed).then_some(is_closed)
    }

    /// The database has a new WAL.
    pub(crate) fn restart(&self) {
        self.frames.store(0, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        self.reset_at.store(self.reset_step(), Ordering::Relaxed);
        self.is_reset_due.store(false, Ordering::Relaxed);
    }

    /// Waits for a pass that is under way; none begins from here on.
    pub(crate) fn close(&self) {
        *self.is_closed.lock().expect("a pass does not panic") = true;
    }
}

struct CheckpointProgress {
    frames: u32,
    copied: u32,
}

/// One passive checkpoint: waits for nobody, and copies as far as readers let it.
fn copy(connection: &Connection) -> rusqlite::Result<CheckpointProgress> {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.prepare_cached(sql)?.query_row([], |row| {
        // Both are -1 where there is no WAL.
        let count = |column| row.get(column).map(|count: i64| u32::try_from(count).unwrap_or(0));
        Ok(CheckpointProgress { frames: count(1)?, copied: count(2)? })
    })
}

/// Moves the WAL into the file and cuts it to nothing. `false`: a reader hinders it.
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
