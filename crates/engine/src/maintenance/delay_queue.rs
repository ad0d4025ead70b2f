//! Holds entries until their time has come, for a thread that takes them.
//!
//! # Invariants
//! - Entries with the same time are taken in the order in which they were added.
//! - After `stop`, no entry is returned.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::system::clock;

pub(crate) struct DelayQueue<T> {
    state: Mutex<DelayQueueState<T>>,
    changed: Condvar,
}

struct DelayQueueState<T> {
    /// The waiting entries, by time and, for equal times, by number.
    waiting: BTreeMap<(Instant, u64), T>,
    added_count: u64,
    is_stopped: bool,
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        let state = DelayQueueState { waiting: BTreeMap::new(), added_count: 0, is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> DelayQueue<T> {
    /// Adds an entry that is returned at `time`, or at once if that has passed.
    pub(crate) fn push(&self, time: Instant, entry: T) {
        let mut state = self.lock();
        let key = (time, state.added_count);
        state.added_count += 1;
        state.waiting.insert(key, entry);
        let is_first = state.waiting.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(state);
        // The thread waits for the first entry.
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits for the next entry whose time has come. Returns `None` once the queue is stopped.
    pub(crate) fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            let first = state.waiting.first_key_value().map(|((time, _), _)| *time);
            let wait = first.map(|time| time.saturating_duration_since(clock::now()));
            state = match wait {
                None => self.changed.wait(state).expect(UNPOISONED),
                Some(wait) if wait.is_zero() => {
                    return state.waiting.pop_first().map(|(_, entry)| entry);
                }
                Some(wait) => self.changed.wait_timeout(state, wait).expect(UNPOISONED).0,
            };
        }
    }

    /// Lets the thread end, and drops the waiting entries.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, DelayQueueState<T>> {
        self.state.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_come_in_the_order_of_their_times() {
        let queue = DelayQueue::default();
        let start = clock::now();
        let after = |ms| start + Duration::from_millis(ms);
        for (ms, entry) in [(20, 'd'), (0, 'a'), (10, 'b'), (10, 'c')] {
            queue.push(after(ms), entry);
        }
        let taken: Vec<_> = (0..4).map_while(|_| queue.next()).collect();
        assert_eq!(taken, ['a', 'b', 'c', 'd']);
        assert!(clock::now() >= after(20));
    }

    #[test]
    fn an_earlier_entry_wakes_the_thread_that_waits_for_a_later_one() {
        let queue = DelayQueue::default();
        queue.push(clock::now() + Duration::from_hours(1), "later");
        thread::scope(|scope| {
            let taken = scope.spawn(|| queue.next());
            queue.push(clock::now(), "now");
            assert_eq!(taken.join().unwrap(), Some("now"));
            let stopped = scope.spawn(|| queue.next());
            queue.stop();
            assert_eq!(stopped.join().unwrap(), None);
        });
    }
}
