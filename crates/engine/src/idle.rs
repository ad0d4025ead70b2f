//! Which databases have had writes and then none for a time: a thread that looks after them.
//!
//! A database joins the queue with the first write after it was last looked at. When its time has
//! come, the thread compares how many batches have run since: none, and it is idle; else it waits
//! for as long again. So a write costs one look at a flag, and idleness is noticed between one and
//! two of these times after the last write.
//!
//! # Invariants
//! - A database stands in the queue at most once (its `Maintenance` says so), and one that has had
//!   a write since it was last maintained stands in it.
//! - A database that is closed meanwhile is skipped.
//!
//! # Not here
//! - What an idle database gets → `maintenance.rs`. What cannot wait for idleness → `upkeep.rs`.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use crate::clock;
use crate::database::Database;

pub(crate) struct Idle {
    time: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// In order of their times: all wait equally long.
    watched: VecDeque<Watched>,
    is_stopped: bool,
}

struct Watched {
    look_at: Instant,
    /// Batches that had run when it joined the queue.
    batches: u64,
    database: Weak<Database>,
}

impl Idle {
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Looks at the database when it may be idle. Its batches so far are `batches`.
    pub(crate) fn watch(&self, batches: u64, database: Weak<Database>) {
        // A time past the clock's end never comes.
        let Some(look_at) = clock::now().checked_add(self.time) else { return };
        let mut state = self.lock();
        state.watched.push_back(Watched { look_at, batches, database });
        let is_first = state.watched.len() == 1;
        drop(state);
        // The thread waits for the first.
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The thread's work, until `stop`.
    pub(crate) fn run(&self) {
        while let Some(Watched { batches, database, .. }) = self.next() {
            if let Some(database) = database.upgrade() {
                database.look_at_idleness(batches);
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_one();
    }

    fn next(&self) -> Option<Watched> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            let now = clock::now();
            let wait = state.watched.front().map(|one| one.look_at.saturating_duration_since(now));
            state = match wait {
                None => self.changed.wait(state).expect(UNPOISONED),
                Some(wait) if wait.is_zero() => return state.watched.pop_front(),
                Some(wait) => self.changed.wait_timeout(state, wait).expect(UNPOISONED).0,
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";
