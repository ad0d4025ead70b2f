//! Records whether a database refuses writes because a commit, a flush or a checkpoint has failed
//! in a way that leaves the content of the disk uncertain.
//!
//! # Invariants
//! - The first cause is kept until the database has recovered: later failures are its consequences.
//!
//! # Not here
//! - Recovery and its schedule → `database/recover.rs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The delays before the attempts to recover, after the failure and after each failed attempt; the
/// last delay repeats forever.
const RECOVERY_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_mins(1)];

#[derive(Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    state: Mutex<PoisonState>,
}

#[derive(Default)]
struct PoisonState {
    cause: Option<Arc<str>>,
    attempts_count: usize,
}

impl Poison {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Returns the reason why writes are refused, if they are.
    pub(crate) fn cause(&self) -> Option<Arc<str>> {
        if self.is_set() { self.lock().cause.clone() } else { None }
    }

    /// Refuses writes from now on. Returns the first cause, and whether it is this one.
    pub(crate) fn set(&self, cause: Arc<str>) -> (Arc<str>, bool) {
        let mut state = self.lock();
        let is_first = state.cause.is_none();
        let first = Arc::clone(state.cause.get_or_insert(cause));
        self.is_set.store(true, Ordering::Release);
        (first, is_first)
    }

    /// Accepts writes again, after the database has recovered.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        *state = PoisonState::default();
        self.is_set.store(false, Ordering::Release);
    }

    /// Returns how long to wait before the next attempt to recover, and counts the attempt.
    pub(crate) fn next_delay(&self) -> Duration {
        let mut state = self.lock();
        let last = RECOVERY_DELAYS.len() - 1;
        let delay = RECOVERY_DELAYS[state.attempts_count.min(last)];
        state.attempts_count += 1;
        delay
    }

    fn lock(&self) -> MutexGuard<'_, PoisonState> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays_until_recovery() {
        let poison = Poison::default();
        assert_eq!(poison.cause(), None);
        assert_eq!(poison.set("flush".into()), ("flush".into(), true));
        assert_eq!(poison.set("commit".into()), ("flush".into(), false));
        poison.clear();
        assert!(!poison.is_set());
        assert_eq!(poison.set("commit".into()), ("commit".into(), true));
    }

    #[test]
    fn attempts_to_recover_become_rarer_and_never_end() {
        let poison = Poison::default();
        let seconds: Vec<_> = (0..5).map(|_| poison.next_delay().as_secs()).collect();
        assert_eq!(seconds, [1, 5, 60, 60, 60]);
        poison.clear();
        assert_eq!(poison.next_delay().as_secs(), 1);
    }
}
