//! The queue of databases that have something to write, which the worker threads take from.
//!
//! # Invariants
//! - A database stands in it at most once (its `BoundedQueue` says who schedules it), so it is
//!   never longer than the number of open databases.
//! - First come, first served: a database that has more to do after a batch goes to the back.
//! - As many workers are woken as there are databases that wait, and no more: a worker that stays
//!   awake takes what it has put back itself.
//! - The worker that fell asleep last is woken first: one busy database stays with one thread, and
//!   its pages in that core's cache.

use std::collections::VecDeque;

use crate::system::thread_sync::{Condvar, Mutex, MutexGuard};

pub(crate) struct RunQueue<D> {
    state: Mutex<RunQueueState<D>>,
    /// One for each worker.
    wakers: Vec<Condvar>,
}

struct RunQueueState<D> {
    waiting: VecDeque<D>,
    /// Workers that nobody has woken yet, in the order in which they fell asleep.
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

    /// The next database with work for that worker; waits for one. `unfinished` goes to the back
    /// first. `None` when stopped and empty.
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
            // It may have woken by itself.
            state.sleeping.retain(|sleeper| *sleeper != worker);
        }
    }

    /// Lets the workers end when nothing is left.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.wakers.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, RunQueueState<D>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
