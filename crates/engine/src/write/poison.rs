//! Whether a database refuses writes, because a commit, a flush or a checkpoint has failed in a way
//! that leaves open what is on the disk.
//!
//! # Invariants
//! - The first cause stays until the database has recovered: what fails after it is a consequence.
//!
//! # Not here
//! - How a database recovers, and when it tries → `database/recover.rs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long after a failure, and after each attempt in vain, the next attempt is made; the last
/// for ever.
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

    /// Why writes are refused, if they are.
    pub(crate) fn cause(&self) -> Option<Arc<str>> {
        if self.is_set() { self.lock().cause.clone() } else { None }
    }

    /// Refuses writes from here on. Returns the first cause, and whether this is it.
    pub(crate) fn set(&self, cause: Arc<str>) -> (Arc<str>, bool) {
        let mut state = self.lock();
        let is_first = state.cause.is_none();
        let first = Arc::clone(state.cause.get_or_insert(cause));
        self.is_set.store(true, Ordering::Release);
        (first, is_first)
    }

    /// The database has recovered.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        *state = PoisonState::default();
        self.is_set.store(false, Ordering::Release);
    }

    /// How long to wait before the next attempt to recover. Counts it.
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
