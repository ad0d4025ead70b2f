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

use crate::clock;
use crate::database::Database;
use crate::delay_queue::DelayQueue;
use crate::disk_reserve::DiskReserve;

/// How often it is looked for room on a disk that was full.
const ROOM_POLL: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct TaskScheduler {
    slow: DelayQueue<SlowTask>,
    timers: DelayQueue<TimerTask>,
}

enum SlowTask {
    Checkpoint(Weak<Database>),
    Recover(Weak<Database>),
    ScanForDamage(Weak<Database>),
    RefillReserve(Arc<DiskReserve>),
}

enum TimerTask {
    ReleaseSnapshots(Weak<Database>),
    /// Holds the database: with work queued, it must not be closed to make room.
    ResumeWriter(Arc<Database>),
}

impl TaskScheduler {
    /// Moves the database's WAL into its file soon.
    pub(crate) fn checkpoint(&self, database: Weak<Database>) {
        self.slow.push(clock::now(), SlowTask::Checkpoint(database));
    }

    /// Tries to recover the database at that time.
    pub(crate) fn recover_at(&self, time: Instant, database: Weak<Database>) {
        self.slow.push(time, SlowTask::Recover(database));
    }

    /// Looks at the database's whole file soon.
    pub(crate) fn scan_for_damage(&self, database: Weak<Database>) {
        self.slow.push(clock::now(), SlowTask::ScanForDamage(database));
    }

    /// Refills the reserve when there is room again.
    pub(crate) fn refill(&self, reserve: Arc<DiskReserve>) {
        self.slow.push(clock::now() + ROOM_POLL, SlowTask::RefillReserve(reserve));
    }

    /// Ends the database's unused snapshots at that time.
    pub(crate) fn release_at(&self, time: Instant, database: Weak<Database>) {
        self.timers.push(time, TimerTask::ReleaseSnapshots(database));
    }

    /// Schedules the database's next batch at that time.
    pub(crate) fn resume_at(&self, time: Instant, database: Arc<Database>) {
        self.timers.push(time, TimerTask::ResumeWriter(database));
    }

    /// The work of the thread for what may take long, until `stop`.
    pub(crate) fn run_slow_tasks(&self) {
        while let Some(task) = self.slow.next() {
            match task {
                SlowTask::Checkpoint(database) => {
                    database.upgrade().inspect(|database| database.checkpoint());
                }
                SlowTask::Recover(database) => {
                    database.upgrade().inspect(|database| database.recover());
                }
                SlowTask::ScanForDamage(database) => {
                    database.upgrade().inspect(|database| database.scan_for_damage());
                }
                SlowTask::RefillReserve(reserve) => {
                    if !reserve.refill() {
                        self.refill(reserve);
                    }
                }
            }
        }
    }

    /// The work of the other thread, until `stop`.
    pub(crate) fn run_timers(&self) {
        while let Some(task) = self.timers.next() {
            match task {
                TimerTask::ReleaseSnapshots(database) => {
                    database.upgrade().inspect(|database| database.release_snapshots());
                }
                TimerTask::ResumeWriter(database) => database.end_stall(),
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.slow.stop();
        self.timers.stop();
    }
}
