//! The queue of databases that have something to write, which the worker threads take from.
//!
//! # Invariants
//! - A database stands in it at most once (`database.rs` asserts it by its `is_scheduled`), so the
//!   queue is never longer than the number of open databases.
//! - First come, first served: a database that has more to do after a batch goes to the back.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::database::Database;

#[derive(Default)]
pub(crate) struct Ready {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    databases: VecDeque<Arc<Database>>,
    is_stopped: bool,
}

impl Ready {
    pub(crate) fn push(&self, database: Arc<Database>) {
        self.lock().databases.push_back(database);
        self.changed.notify_one();
    }

    /// The next database with work; waits for one. `None` when stopped and empty.
    pub(crate) fn pop(&self) -> Option<Arc<Database>> {
        let mut queue = self.lock();
        loop {
            if let Some(database) = queue.databases.pop_front() {
                return Some(database);
            }
            if queue.is_stopped {
                return None;
            }
            queue = self.changed.wait(queue).expect("no code panics while it holds this lock");
        }
    }

    /// Lets the workers end when nothing is left.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds this lock")
    }
}
