//! Schedules the tasks of databases other than writes, for two threads: one for tasks that may take
//! long (moving WALs into their files, recovery, full scans), one for short tasks whose time has
//! come (ending unused snapshots, ending a write stall).
//!
//! # Invariants
//! - A database is in each queue at most once for each kind of task (its own flags ensure that).
//! - A database that is closed in the meantime is skipped.
//!
//! # Not here
//! - The time at which a database needs which task → `checkpoint.rs`, `readers.rs`,
//!   `database/recover.rs`, `database/scrub.rs`.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::delay_queue::DelayQueue;
use super::disk_reserve::DiskReserve;
use crate::system::clock;

/// The interval at which a disk that was full is checked for free space.
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
    /// Resumes a stalled writer. It holds the database, which must not be closed while work is
    /// queued.
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

    /// Tries to recover the database at `time`.
    pub(crate) fn recover_at(&self, time: Instant, database: Weak<D>) {
        self.slow.push(time, SlowTask::Recover(database));
    }

    /// Runs a full scan of the database soon.
    pub(crate) fn scan_for_damage(&self, database: Weak<D>) {
        self.slow.push(clock::now(), SlowTask::ScanForDamage(database));
    }

    /// Refills the reserve once there is free space again.
    pub(crate) fn refill(&self, reserve: Arc<DiskReserve>) {
        self.slow.push(clock::now() + ROOM_POLL, SlowTask::RefillReserve(reserve));
    }

    /// Ends the database's unused snapshots at `time`.
    pub(crate) fn release_at(&self, time: Instant, database: Weak<D>) {
        self.timers.push(time, TimerTask::ReleaseSnapshots(database));
    }

    /// Schedules the database's next batch at `time`.
    pub(crate) fn resume_at(&self, time: Instant, database: Arc<D>) {
        self.timers.push(time, TimerTask::ResumeWriter(database));
    }

    /// Waits for the next task that may take long. Returns `None` after `stop`.
    pub(crate) fn next_slow(&self) -> Option<SlowTask<D>> {
        self.slow.next()
    }

    /// Waits for the next short task. Returns `None` after `stop`.
    pub(crate) fn next_timer(&self) -> Option<TimerTask<D>> {
        self.timers.next()
    }

    pub(crate) fn stop(&self) {
        self.slow.stop();
        self.timers.stop();
    }
}
