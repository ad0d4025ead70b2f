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

use super::delay_queue::DelayQueue;
use crate::system::clock;

pub(crate) struct IdleWatcher<D> {
    time: Duration,
    watched: DelayQueue<WatchedDatabase<D>>,
}

struct WatchedDatabase<D> {
    /// Batches that had run when it joined the queue.
    batches: u64,
    database: Weak<D>,
}

impl<D> IdleWatcher<D> {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, watched: DelayQueue::default() }
    }

    /// Looks at the database when it may be idle. Its batches so far are `batches`.
    pub(crate) fn watch(&self, batches: u64, database: Weak<D>) {
        // A time past the clock's end never comes.
        let Some(look_at) = clock::now().checked_add(self.time) else { return };
        self.watched.push(look_at, WatchedDatabase { batches, database });
    }

    /// Waits for the next database that may be idle, and returns its batches when it joined the
    /// queue. `None` after `stop`.
    pub(crate) fn next(&self) -> Option<(u64, Weak<D>)> {
        self.watched.next().map(|WatchedDatabase { batches, database }| (batches, database))
    }

    pub(crate) fn stop(&self) {
        self.watched.stop();
    }
}
