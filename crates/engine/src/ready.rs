//! The queue of databases that have something to write, which the worker threads take from.
//!
//! # Invariants
//! - A database stands in it at most once (its `Queue` says who schedules it), so it is never
//!   longer than the number of open databases.
//! - First come, first served: a database that has more to do after a batch goes to the back.
//! - As many workers are woken as there are databases that wait, and no more: a worker that stays
//!   awake takes what it has put back itself.

use std::collections::VecDeque;

use crate::sync::{Condvar, Mutex, MutexGuard};

pub(crate) struct Ready<D> {
    state: Mutex<State<D>>,
    changed: Condvar,
}

struct State<D> {
    waiting: VecDeque<D>,
    sleeping_count: usize,
    is_stopped: bool,
}

impl<D> Ready<D> {
    pub(crate) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), sleeping_count: 0, is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn push(&self, database: D) {
        let mut state = self.lock();
        state.waiting.push_back(database);
        let is_anyone_asleep = state.sleeping_count > 0;
        drop(state);
        if is_anyone_asleep {
            self.changed.notify_one();
        }
    }

    /// The next database with work; waits for one. `unfinished` goes to the back first. `None` when
    /// stopped and empty.
    pub(crate) fn next(&self, unfinished: Option<D>) -> Option<D> {
        let mut state = self.lock();
        state.waiting.extend(unfinished);
        loop {
            if let Some(database) = state.waiting.pop_front() {
                return Some(database);
            }
            if state.is_stopped {
                return None;
            }
            state.sleeping_count += 1;
            state = self.changed.wait(state).expect("no code panics while it holds this lock");
            state.sleeping_count -= 1;
        }
    }

    /// Lets the workers end when nothing is left.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
