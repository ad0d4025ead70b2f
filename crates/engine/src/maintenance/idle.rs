//! Detects, on a thread of its own, databases that have had writes and then none for a time.
//!
//! A database joins the queue with the first write after its last check. When its time has come,
//! the thread compares how many batches have run since: if none, the database is idle; otherwise it
//! waits for as long again. So a write costs one check of a flag, and idleness is noticed between
//! one and two of these times after the last write.
//!
//! # Invariants
//! - A database is in the queue at most once (its `MaintenanceState` ensures that), and one that
//!   had a write since its last maintenance is in it.
//! - A database that is closed in the meantime is skipped.
//!
//! # Not here
//! - The maintenance of an idle database → `maintenance.rs`. Tasks that cannot wait →
//!   `scheduler.rs`.

use std::sync::Weak;
use std::time::Duration;

use super::delay_queue::DelayQueue;
use crate::system::clock;

pub(crate) struct IdleWatcher<D> {
    time: Duration,
    watched: DelayQueue<WatchedDatabase<D>>,
}

struct WatchedDatabase<D> {
    /// The number of batches that had run when the database joined the queue.
    batches: u64,
    database: Weak<D>,
}

impl<D> IdleWatcher<D> {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, watched: DelayQueue::default() }
    }

    /// Checks the database when it may be idle. `batches` is the number of batches that it has run
    /// so far.
    pub(crate) fn watch(&self, batches: u64, database: Weak<D>) {
        // A time beyond the clock's range never comes.
        let Some(look_at) = clock::now().checked_add(self.time) else { return };
        self.watched.push(look_at, WatchedDatabase { batches, database });
    }

    /// Waits for the next database that may be idle. Returns it with the number of batches that it
    /// had run when it joined the queue, or `None` after `stop`.
    pub(crate) fn next(&self) -> Option<(u64, Weak<D>)> {
        self.watched.next().map(|WatchedDatabase { batches, database }| (batches, database))
    }

    pub(crate) fn stop(&self) {
        self.watched.stop();
    }
}
