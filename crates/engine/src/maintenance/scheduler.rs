//! What happens to databases besides their writes, on two threads: one for what may take long
//! (moving WALs into their files, recovering, looking for damage), one for what is done at once when
//! its time has come (ending snapshots that nobody uses, giving a slowed writer its next turn).
//!
//! # Invariants
//! - A database stands in each queue at most once for each kind of task (its own flags say so).
//! - A database that is closed meanwhile is skipped.
//!
//! # Not here
//! - When a database wants which → `checkpoint.rs`, `readers.rs`, `database/recover.rs`,
//!   `database/scrub.rs`.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::delay_queue::DelayQueue;
use super::disk_reserve::DiskReserve;
use crate::system::clock;

/// How often it is looked for room on a disk that was full.
const ROOM_POLL: Duration = Duration::from_secs(2);

pub(crate) struct TaskScheduler<D> {
    slow: DelayQueue<SlowTask<D>>,
    timers: DelayQueue<TimerTask<D>>,
}

pub(crate) enum SlowTask<D> {
    Checkpoint(Weak<D>),
    Recover(Weak<D>),
    ScanForDamage(Weak<D>),
    RefillReserve(Arc<DiskReserve>),
}

pub(crate) enum TimerTask<D> {
    ReleaseSnapshots(Weak<D>),
    /// Holds the database: with work queued, it must not be closed to make room.
    ResumeWriter(Arc<D>),
}

impl<D> Default for TaskScheduler<D> {
    fn default() -> Self {
        Self { slow: DelayQueue::default(), timers: DelayQueue::default() }
    }
}

impl<D> TaskScheduler<D> {
    /// Moves the database's WAL into its file soon.
    pub(crate) fn checkpoint(&self, database: Weak<D>) {
        self.slow.push(clock::now(), SlowTask::Checkpoint(database));
    }

    /// Tries to recover the database at that time.
    pub(crate) fn recover_at(&self, time: Instant, database: Weak<D>) {
        self.slow.push(time, SlowTask::Recover(database));
    }

    /// Looks at the database's whole file soon.
    pub(crate) fn scan_for_damage(&self, database: Weak<D>) {
        self.slow.push(clock::now(), SlowTask::ScanForDamage(database));
    }

    /// Refills the reserve when there is room again.
    pub(crate) fn refill(&self, reserve: Arc<DiskReserve>) {
        self.slow.push(clock::now() + ROOM_POLL, SlowTask::RefillReserve(reserve));
    }

    /// Ends the database's unused snapshots at that time.
    pub(crate) fn release_at(&self, time: Instant, database: Weak<D>) {
        self.timers.push(time, TimerTask::ReleaseSnapshots(database));
    }

    /// Schedules the database's next batch at that time.
    pub(crate) fn resume_at(&self, time: Instant, database: Arc<D>) {
        self.timers.push(time, TimerTask::ResumeWriter(database));
    }

    /// Waits for the next task of the thread for what may take long. `None` after `stop`.
    pub(crate) fn next_slow(&self) -> Option<SlowTask<D>> {
        self.slow.next()
    }

    /// The same for the other thread.
    pub(crate) fn next_timer(&self) -> Option<TimerTask<D>> {
        self.timers.next()
    }

    pub(crate) fn stop(&self) {
        self.slow.stop();
        self.timers.stop();
    }
}
