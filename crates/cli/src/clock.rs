//! The one place where the program reads the wall clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the program's one reading of the wall clock")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// For pauses.
#[expect(clippy::disallowed_methods, reason = "the program's one reading of the monotonic clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
