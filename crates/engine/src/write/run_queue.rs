//! Queues the databases that have writes waiting, in the order in which the worker threads take
//! them.
//!
//! # Invariants
//! - A database is in the queue at most once (its `BoundedQueue` decides who schedules it), so the
//!   queue is never longer than the number of open databases.
//! - Databases are served in order of arrival: one that has more work after a batch moves to the
//!   back.
//! - As many workers are woken as there are waiting databases, and no more: a worker that puts a
//!   database back takes the next one itself.
//! - The worker that fell asleep last is woken first: one busy database stays with one thread, and
//!   its pages in that core's cache.

use std::collections::VecDeque;

use crate::system::thread_sync::{Condvar, Mutex, MutexGuard};

pub(crate) struct RunQueue<D> {
    state: Mutex<RunQueueState<D>>,
    /// The condition variables of the workers, one for each.
    wakers: Vec<Condvar>,
}

struct RunQueueState<D> {
    waiting: VecDeque<D>,
    /// The sleeping workers that have not been woken yet, in the order in which they fell asleep.
    sleeping: Vec<usize>,
    is_stopped: bool,
}

impl<D> RunQueue<D> {
    pub(crate) fn new(workers_count: usize) -> Self {
        let state =
            RunQueueState { waiting: VecDeque::new(), sleeping: Vec::new(), is_stopped: false };
        let wakers = (0..workers_count).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(state), wakers }
    }

    pub(crate) fn push(&self, database: D) {
        let mut state = self.lock();
        state.waiting.push_back(database);
        let woken = state.sleeping.pop();
        drop(state);
        if let Some(worker) = woken {
            self.wakers[worker].notify_one();
        }
    }

    /// Returns the next database that has work for this worker, and waits until there is one. Puts
    /// `unfinished` at the back of the queue first. Returns `None` if the queue is stopped and
    /// empty.
    pub(crate) fn next(&self, worker: usize, unfinished: Option<D>) -> Option<D> {
        let mut state = self.lock();
        state.waiting.extend(unfinished);
        loop {
            if let Some(database) = state.waiting.pop_front() {
                return Some(database);
            }
            if state.is_stopped {
                return None;
            }
            state.sleeping.push(worker);
            state =
                self.wakers[worker].wait(state).expect("no code panics while it holds this lock");
            // After a spurious wakeup, or a call of `stop`, the worker is still in the list.
            state.sleeping.retain(|sleeper| *sleeper != worker);
        }
    }

    /// Lets the workers end once the queue is empty.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.wakers.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, RunQueueState<D>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
