//! Provides the clock of the engine, the server, the doctor and the programs: no other code of
//! theirs reads the clocks of `std`. Crates that must not read the time, such as `crdt` and
//! `replica`, take it as an argument.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the time of the monotonic clock, for durations.
#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the milliseconds since 1970 by the system's clock, or 0 before 1970.
#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time that has passed since `time` by the system's clock, or `None` if it is in the
/// future.
#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub(crate) fn age_of(time: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(time).ok()
}

/// A time budget for many short steps, which does not read the clock at each: while steps are
/// quick, it reads the clock only after some of them.
pub(crate) struct BatchTimeBudget {
    until: Instant,
    total: Duration,
    looked: Instant,
    steps_to_look: u32,
    stride: u32,
    is_spent: bool,
}

/// The divisor of the budget that gives the time that steps between two clock readings should not
/// exceed.
const SHARE_BETWEEN_LOOKS: u32 = 32;
/// The maximum number of steps between two clock readings. A reading costs a tenth of the shortest
/// step, so a sixteenth of that is not worth saving.
const STRIDE_MAX: u32 = 16;

impl BatchTimeBudget {
    pub(crate) fn new(total: Duration) -> Self {
        let looked = now();
        let until = looked + total;
        Self { until, total, looked, steps_to_look: 1, stride: 1, is_spent: false }
    }

    /// Counts one step. Returns whether the time is over.
    pub(crate) fn step(&mut self) -> bool {
        self.steps_to_look -= 1;
        if self.steps_to_look == 0 {
            let now = now();
            let is_quick = (now - self.looked) * SHARE_BETWEEN_LOOKS < self.total;
            self.stride = if is_quick { (self.stride * 2).min(STRIDE_MAX) } else { 1 };
            self.steps_to_look = self.stride;
            self.looked = now;
            self.is_spent = now >= self.until;
        }
        self.is_spent
    }

    /// Returns whether the time was over at the last reading of the clock.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent
    }
}
