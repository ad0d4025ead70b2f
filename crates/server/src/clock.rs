//! The clock: the one place of the server that reads the time.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 if the system's clock stands before that.
#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).expect("fits for 500 million years"))
}

/// For durations.
#[expect(clippy::disallowed_methods, reason = "this is the named place that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
