//! The monotonic clock: the one place of the engine that reads the time.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
