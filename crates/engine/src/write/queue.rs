//! Queues the writes that wait for one database, and records whether a worker is scheduled for it.
//!
//! # Invariants
//! - A queue with entries is scheduled: `push` returns `true` to the one caller that must schedule
//!   the database, and `unschedule` only unschedules an empty queue.
//! - After `close`, the queue accepts no entries.

use std::collections::VecDeque;

use crate::system::thread_sync::{Mutex, MutexGuard};

pub(crate) struct BoundedQueue<J> {
    state: Mutex<BoundedQueueState<J>>,
    count_max: usize,
}

struct BoundedQueueState<J> {
    waiting: VecDeque<J>,
    /// Whether the database is in the run queue or with a worker.
    is_scheduled: bool,
    is_closed: bool,
    count_max_seen: usize,
}

/// The reason why an entry was not accepted, with the entry itself.
pub(crate) enum QueuePushError<J> {
    Full(J),
    Closed(J),
}

impl<J> BoundedQueue<J> {
    pub(crate) fn new(count_max: usize) -> Self {
        let state = BoundedQueueState {
            waiting: VecDeque::new(),
            is_scheduled: false,
            is_closed: false,
            count_max_seen: 0,
        };
        Self { state: Mutex::new(state), count_max }
    }

    /// Appends an entry. Returns `true` if the caller must schedule the database.
    pub(crate) fn push(&self, entry: J) -> Result<bool, QueuePushError<J>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(QueuePushError::Closed(entry));
        }
        if state.waiting.len() >= self.count_max {
            return Err(QueuePushError::Full(entry));
        }
        state.waiting.push_back(entry);
        state.count_max_seen = state.count_max_seen.max(state.waiting.len());
        Ok(!std::mem::replace(&mut state.is_scheduled, true))
    }

    /// Removes and returns the oldest entries, `count_max` at most.
    pub(crate) fn take(&self, count_max: usize) -> Vec<J> {
        let mut state = self.lock();
        let count = count_max.min(state.waiting.len());
        state.waiting.drain(..count).collect()
    }

    /// Puts entries that were taken but did not run back to the front. Returns how many entries
    /// wait.
    pub(crate) fn put_back(&self, entries: impl DoubleEndedIterator<Item = J>) -> usize {
        let mut state = self.lock();
        for entry in entries.rev() {
            state.waiting.push_front(entry);
        }
        state.waiting.len()
    }

    /// Checks whether entries wait. If none does, the next `push` schedules the database again.
    pub(crate) fn unschedule(&self) -> bool {
        let mut state = self.lock();
        state.is_scheduled = !state.waiting.is_empty();
        state.is_scheduled
    }

    /// Schedules the database for the caller, unless it is scheduled already or closed. If this
    /// returns `true`, the caller must end its turn with `unschedule`, and schedule the database if
    /// that returns `true`.
    pub(crate) fn try_schedule(&self) -> bool {
        let mut state = self.lock();
        !state.is_closed && !std::mem::replace(&mut state.is_scheduled, true)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Makes the queue refuse all further entries.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Returns the largest number of entries that have waited at once.
    pub(crate) fn count_max_seen(&self) -> usize {
        self.lock().count_max_seen
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueueState<J>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
