//! Which databases have had writes and then none for a time: a thread that looks after them.
//!
//! A database joins the queue with the first write after it was last looked at. When its time has
//! come, the thread compares how many batches have run since: none, and it is idle; else it waits
//! for as long again. So a write costs one look at a flag, and idleness is noticed between one and
//! two of these times after the last write.
//!
//! # Invariants
//! - A database stands in the queue at most once (its `MaintenanceState` says so), and one that has
//!   had a write since it was last maintained stands in it.
//! - A database that is closed meanwhile is skipped.
//!
//! # Not here
//! - What an idle database gets → `maintenance.rs`. What cannot wait for idleness → `scheduler.rs`.

use std::sync::Weak;
use std::time::Duration;

use crate::clock;
use crate::database::Database;
use crate::delay_queue::DelayQueue;

pub(crate) struct IdleWatcher {
    time: Duration,
    watched: DelayQueue<WatchedDatabase>,
}

struct WatchedDatabase {
    /// Batches that had run when it joined the queue.
    batches: u64,
    database: Weak<Database>,
}

impl IdleWatcher {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, watched: DelayQueue::default() }
    }

    /// Looks at the database when it may be idle. Its batches so far are `batches`.
    pub(crate) fn watch(&self, batches: u64, database: Weak<Database>) {
        // A time past the clock's end never comes.
        let Some(look_at) = clock::now().checked_add(self.time) else { return };
        self.watched.push(look_at, WatchedDatabase { batches, database });
    }

    /// The thread's work, until `stop`.
    pub(crate) fn run(&self) {
        while let Some(WatchedDatabase { batches, database }) = self.watched.next() {
            if let Some(database) = database.upgrade() {
                database.check_idle(batches);
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.watched.stop();
    }
}
