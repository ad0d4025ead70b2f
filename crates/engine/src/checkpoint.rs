//! When a database's WAL is moved into its file, so that it stays small and no commit waits long.
//!
//! SQLite by itself checkpoints inside the commit that crosses a limit: every caller of that batch
//! waits for two fsyncs and for all pages. Here another connection copies the pages while the
//! writer goes on (a *pass*), each time that so many frames have come. What it can never do is
//! catch up, so when the WAL has reached a few times that length, the writer itself copies the
//! little that is left and starts it anew (a *reset*); reads wait for that moment, and it waits a
//! few milliseconds for those under way.
//!
//! The limit is the profile's `wal_autocheckpoint`; 0 leaves the WAL alone.
//!
//! # Not here
//! - The thread that passes run on → `upkeep.rs`. Snapshots that hinder a reset → `readers.rs`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::Connection;

/// A reset is due when the WAL is so many times as long as what makes a pass due.
const PASSES_PER_RESET: u32 = 4;

/// The state of one database's WAL. Counts are in frames: pages in the WAL.
pub(crate) struct Checkpoints {
    /// Frames that make a pass due.
    limit: u32,
    frames: AtomicU32,
    /// Frames that the last pass found in the file.
    copied: AtomicU32,
    /// Frames that make a reset due. An attempt that fails, because of a long read, is made again
    /// only when as many more have come: it keeps everybody waiting.
    reset_at: AtomicU32,
    is_pass_due: AtomicBool,
    is_reset_due: AtomicBool,
    /// Taken for a pass; true once the database is closed.
    is_closed: Mutex<bool>,
    pub(crate) counters: Counters,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) frames_max: AtomicU32,
    pub(crate) pauses: AtomicU64,
    pub(crate) longest_pause_us: AtomicU64,
}

impl Checkpoints {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            frames: AtomicU32::new(0),
            copied: AtomicU32::new(0),
            reset_at: AtomicU32::new(limit.saturating_mul(PASSES_PER_RESET)),
            is_pass_due: AtomicBool::new(false),
            is_reset_due: AtomicBool::new(false),
            is_closed: Mutex::new(false),
            counters: Counters::default(),
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
        let copied = self.copied.load(Ordering::Relaxed);
        self.limit > 0
            && frames.saturating_sub(copied) >= self.limit
            && !self.is_pass_due.swap(true, Ordering::Relaxed)
    }

    /// Copies what the WAL holds, on a connection that `open` makes, while the writer goes on.
    pub(crate) fn pass<E>(&self, open: impl FnOnce() -> Result<Connection, E>) -> Result<(), E>
    where
        E: From<rusqlite::Error>,
    {
        let is_closed = self.is_closed.lock().expect("a pass does not panic");
        if *is_closed {
            return Ok(());
        }
        let result = open().and_then(|connection| Ok(copy(&connection)?));
        drop(is_closed);
        if let Ok(Copied { frames, copied }) = result {
            self.copied.store(copied, Ordering::Relaxed);
            if frames >= self.reset_at.load(Ordering::Relaxed) {
                self.is_reset_due.store(true, Ordering::Relaxed);
            }
        }
        self.is_pass_due.store(false, Ordering::Relaxed);
        result.map(drop)
    }

    /// Is a reset due? Asked by the writer before a batch; once for each.
    pub(crate) fn take_reset(&self) -> bool {
        self.is_reset_due.load(Ordering::Relaxed)
            && self.is_reset_due.swap(false, Ordering::Relaxed)
    }

    /// Copies the rest on the writer's own connection.
    pub(crate) fn catch_up(&self, writer: &Connection) -> rusqlite::Result<()> {
        let Copied { frames, copied } = copy(writer)?;
        self.copied.store(copied, Ordering::Relaxed);
        self.reset_at.store(frames.saturating_add(self.reset_step()), Ordering::Relaxed);
        Ok(())
    }

    fn reset_step(&self) -> u32 {
        self.limit.saturating_mul(PASSES_PER_RESET)
    }

    /// Notes for how long the writer was kept from its work.
    pub(crate) fn paused(&self, pause: Duration) {
        let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.counters.pauses.fetch_add(1, Ordering::Relaxed);
        self.counters.longest_pause_us.fetch_max(pause_us, Ordering::Relaxed);
    }

    /// Waits for a pass that is under way, and lets none begin until the guard is dropped. `None`:
    /// the database is closed.
    pub(crate) fn keep_off(&self) -> Option<MutexGuard<'_, bool>> {
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

struct Copied {
    frames: u32,
    copied: u32,
}

/// One passive checkpoint: waits for nobody, and copies as far as readers let it.
fn copy(connection: &Connection) -> rusqlite::Result<Copied> {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.prepare_cached(sql)?.query_row([], |row| {
        // Both are -1 where there is no WAL.
        let count = |column| row.get(column).map(|count: i64| u32::try_from(count).unwrap_or(0));
        Ok(Copied { frames: count(1)?, copied: count(2)? })
    })
}
