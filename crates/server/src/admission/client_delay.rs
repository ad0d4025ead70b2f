//! Measures how long a client keeps the server waiting, less the time that its bytes earn.

use std::time::Duration;

use tokio::time::Instant;

/// The rate at which a client must send or read once its first time is over: less than the slowest
/// links of mobile phones.
const BYTES_PER_SECOND_MIN: u32 = 16 << 10;

/// The delay that one client has caused. A client that sends a byte now and then causes as much as
/// one that sends none.
#[derive(Default)]
pub(crate) struct ClientDelay {
    past: Duration,
    /// The time since when the server waits, if it does.
    waiting_since: Option<Instant>,
}

impl ClientDelay {
    /// Records that the server waits now, and returns how long it has waited in all.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        let since = *self.waiting_since.get_or_insert(now);
        self.past + now.saturating_duration_since(since)
    }

    /// Records that the client has sent or read this many bytes, so the server does not wait any
    /// more.
    pub(crate) fn end_wait(&mut self, now: Instant, bytes: usize) {
        let waited = self.wait(now);
        self.waiting_since = None;
        self.past = waited.saturating_sub(time_for(bytes));
    }
}

/// Returns the time in which a client must send or read this many bytes.
pub(crate) fn time_for(bytes: usize) -> Duration {
    Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX) / BYTES_PER_SECOND_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pay_for_the_time_in_which_they_must_come() {
        let second = Duration::from_secs(1);
        let mut now = Instant::now();
        let mut delay = ClientDelay::default();
        let mut wait = |seconds: u32, bytes| {
            delay.wait(now);
            now += second * seconds;
            let waited = delay.wait(now);
            delay.end_wait(now, bytes);
            waited
        };
        assert_eq!(wait(5, 2 * BYTES_PER_SECOND_MIN as usize), 5 * second);
        assert_eq!(wait(1, 1), 4 * second);
        assert!(wait(1, usize::MAX) > 4 * second);
        // Unused time is not saved up.
        assert_eq!(wait(7, 0), 7 * second);
    }
}
