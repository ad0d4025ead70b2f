//! What happens to a database besides its writes: a thread that moves WALs into their files and
//! ends snapshots that nobody uses any more.
//!
//! # Invariants
//! - A database stands in each queue at most once (its own flags say so).
//! - A database that is closed meanwhile is skipped.
//!
//! # Not here
//! - When a database wants which → `checkpoint.rs`, `readers.rs`.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Weak};
use std::time::Instant;

use crate::clock;
use crate::database::Database;

#[derive(Default)]
pub(crate) struct Upkeep {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    checkpoints: VecDeque<Weak<Database>>,
    /// In order of their times: all wait equally long.
    releases: VecDeque<(Instant, Weak<Database>)>,
    is_stopped: bool,
}

enum Task {
    Checkpoint(Weak<Database>),
    Release(Weak<Database>),
}

impl Upkeep {
    /// Moves the database's WAL into its file soon.
    pub(crate) fn checkpoint(&self, database: Weak<Database>) {
        self.lock().checkpoints.push_back(database);
        self.changed.notify_one();
    }

    /// Ends the database's unused snapshots at that time.
    pub(crate) fn release_at(&self, time: Instant, database: Weak<Database>) {
        let mut state = self.lock();
        state.releases.push_back((time, database));
        let is_first = state.releases.len() == 1;
        drop(state);
        // The thread waits for the first.
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The thread's work, until `stop`.
    pub(crate) fn run(&self) {
        while let Some(task) = self.next() {
            match task {
                Task::Checkpoint(database) => {
                    database.upgrade().inspect(|database| database.checkpoint());
                }
                Task::Release(database) => {
                    database.upgrade().inspect(|database| database.release_snapshots());
                }
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_one();
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(database) = state.checkpoints.pop_front() {
                return Some(Task::Checkpoint(database));
            }
            let wait = state
                .releases
                .front()
                .map(|(time, _)| time.saturating_duration_since(clock::now()));
            state = match wait {
                None => self.changed.wait(state).expect(UNPOISONED),
                Some(wait) if wait.is_zero() => {
                    let (_, database) = state.releases.pop_front()?;
                    return Some(Task::Release(database));
                }
                Some(wait) => self.changed.wait_timeout(state, wait).expect(UNPOISONED).0,
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";
