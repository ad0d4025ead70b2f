//! The writes that wait for one database, and whether a worker knows of it.
//!
//! # Invariants
//! - A queue with entries is scheduled: `push` says so to the one caller who must schedule it, and
//!   `unschedule` only unschedules what is empty.
//! - After `close` nothing is accepted.

use std::collections::VecDeque;

use crate::system::thread_sync::{Mutex, MutexGuard};

pub(crate) struct BoundedQueue<J> {
    state: Mutex<BoundedQueueState<J>>,
    count_max: usize,
}

struct BoundedQueueState<J> {
    waiting: VecDeque<J>,
    /// In the run queue, or with a worker.
    is_scheduled: bool,
    is_closed: bool,
    count_max_seen: usize,
}

/// Why an entry was not accepted. It is given back.
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

    /// Appends. `true`: the caller must schedule the database.
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

    /// Takes the oldest entries, `count_max` at most.
    pub(crate) fn take(&self, count_max: usize) -> Vec<J> {
        let mut state = self.lock();
        let count = count_max.min(state.waiting.len());
        state.waiting.drain(..count).collect()
    }

    /// Puts back, in front, what was taken and did not have its turn. Returns how much waits.
    pub(crate) fn put_back(&self, entries: impl DoubleEndedIterator<Item = J>) -> usize {
        let mut state = self.lock();
        for entry in entries.rev() {
            state.waiting.push_front(entry);
        }
        state.waiting.len()
    }

    /// Does anything wait? If not, the next `push` schedules the database anew.
    pub(crate) fn unschedule(&self) -> bool {
        let mut state = self.lock();
        state.is_scheduled = !state.waiting.is_empty();
        state.is_scheduled
    }

    /// Takes the turn that a worker would have, unless one has it or something waits for it. Who has
    /// it ends it with `unschedule`, and schedules the database if that says so.
    pub(crate) fn try_schedule(&self) -> bool {
        let mut state = self.lock();
        !state.is_closed && !std::mem::replace(&mut state.is_scheduled, true)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Accepts nothing more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// The most that have waited at once.
    pub(crate) fn count_max_seen(&self) -> usize {
        self.lock().count_max_seen
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueueState<J>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
