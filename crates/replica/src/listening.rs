//! Listening to the server: `GET /v1/sync/events` over HTTP, and how long to wait before it is
//! asked again.
//!
//! # Invariants
//! - A server that says nothing for [`QUIET_MAX`], not even that it lives, is gone.
//! - A line has a limit, and so has a pause.
//!
//! # Not here
//! - What an event says → `protocol::EventReader`. Threads, and what to do about it → `cli`.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use protocol::{EventReader, VaultState};
use ureq::BodyReader;

use crate::error::{Error, Result};

/// Twice the server's pause between two signs of life, and some time for the network.
pub(crate) const QUIET_MAX: Duration = Duration::from_secs(45);
/// No line of an event is nearly as long.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// The first pause, and the longest: a server that was restarted is back in a moment, and one that
/// is gone for the night is asked once a minute.
const PAUSE_MS_MIN: u64 = 500;
const PAUSE_MS_MAX: u64 = 60_000;

/// A stream of events, open.
pub struct Listening {
    lines: BufReader<BodyReader<'static>>,
    reader: EventReader,
}

/// What a server that is listened to says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// How the vault stands.
    State(VaultState),
    /// That it lives.
    SignOfLife,
    /// Nothing more: it stops, or it does not know this device any more.
    End,
}

impl Listening {
    pub(crate) fn new(body: BodyReader<'static>) -> Self {
        Self { lines: BufReader::new(body), reader: EventReader::default() }
    }

    /// Waits for what is said next.
    pub fn hear(&mut self) -> Result<Heard> {
        loop {
            let mut line = String::new();
            let read = self.lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
            let read = read.map_err(|source| Error::Unreachable(source.to_string()))?;
            let Some(line) = line.strip_suffix('\n') else {
                return if read as u64 == LINE_BYTES_MAX {
                    Err(Error::Unreachable("its events are not Warren's".into()))
                } else {
                    Ok(Heard::End)
                };
            };
            if line.starts_with(':') {
                return Ok(Heard::SignOfLife);
            }
            let event = self.reader.line(line.strip_suffix('\r').unwrap_or(line));
            let event = event.map_err(|why| Error::Unreachable(format!("its event: {why}")))?;
            if let Some(state) = event {
                return Ok(Heard::State(state));
            }
        }
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// How long to wait before what failed is tried again: twice as long each time, and by chance up to
/// half of that less, so that the devices of a server that was away do not all come back at once.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let random = getrandom::u64().expect("the system gives random numbers");
        self.pause_with(random)
    }

    /// It did not fail: the next pause is the shortest again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    fn pause_with(&mut self, random: u64) -> Duration {
        let longest_ms = PAUSE_MS_MIN.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(longest_ms - random % (longest_ms / 2 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_differ_by_up_to_half() {
        let mut backoff = Backoff::default();
        let longest: Vec<_> = (0..9).map(|_| backoff.pause_with(0).as_millis()).collect();
        assert_eq!(longest, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.pause_with(30_000).as_millis(), 30_000);
        backoff.reset();
        assert_eq!(backoff.pause_with(250).as_millis(), 250);
        for _ in 0..100 {
            let pause = backoff.pause().as_millis();
            assert!((500..=60_000).contains(&pause), "{pause}");
        }
    }
}
