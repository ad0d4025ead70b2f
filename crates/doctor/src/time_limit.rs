//! Limits the time of an examination and of its statements.
//!
//! # Invariants
//! - A statement that runs past its limit is interrupted (`ExaminationBudget::limit`) by SQLite's
//!   progress handler, also inside `quick_check` and sorts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::clock::now;
use rusqlite::Connection;

/// The number of instructions of SQLite's virtual machine between two reads of the clock: some tens
/// of microseconds.
const INSTRUCTIONS_BETWEEN_LOOKS: i32 = 1_000;

/// Waits for this time, between two reads of the locks of other processes, which notify no one when
/// they release a lock.
pub(crate) fn pause(time: Duration) {
    let until = now() + time;
    while let Some(left) = until.checked_duration_since(now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// The time that one examination may take.
#[derive(Clone)]
pub(crate) struct ExaminationBudget {
    started: Instant,
    total: Duration,
    /// The time at which the running statement must end, in microseconds from the start.
    deadline_us: Arc<AtomicU64>,
}

impl ExaminationBudget {
    pub(crate) fn new(total: Duration) -> Self {
        let deadline_us = Arc::new(AtomicU64::new(micros(total)));
        Self { started: now(), total, deadline_us }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now() - self.started
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.total.saturating_sub(self.elapsed())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Limits the next statements on the connection that `guard` was called with to this time, and
    /// to the total time of the examination.
    pub(crate) fn limit(&self, time: Duration) {
        let deadline = (self.elapsed() + time).min(self.total);
        self.deadline_us.store(micros(deadline), Ordering::Relaxed);
    }

    /// Interrupts this connection's statements at the limit.
    pub(crate) fn guard(&self, db: &mut Connection) -> rusqlite::Result<()> {
        let (started, deadline) = (self.started, Arc::clone(&self.deadline_us));
        let is_over = move || micros(now() - started) >= deadline.load(Ordering::Relaxed);
        db.progress_handler(INSTRUCTIONS_BETWEEN_LOOKS, Some(is_over))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
