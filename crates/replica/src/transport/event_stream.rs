//! Subscribes to the server's events by `GET /v1/sync/events` over HTTP, and computes the pauses
//! before retries.
//!
//! # Invariants
//! - A server that sends nothing for [`KEEPALIVE_TIMEOUT`], not even a keep-alive, counts as gone.
//! - The length of a line is limited, and so is a pause.
//!
//! # Not here
//! - The syntax of an event → `protocol::EventLineParser`. Threads and reactions → `cli`.

use std::collections::VecDeque;
#[cfg(not(target_family = "wasm"))]
use std::fmt;
#[cfg(not(target_family = "wasm"))]
use std::io::Read;
use std::time::Duration;

use protocol::{EventLineParser, VaultState};
#[cfg(not(target_family = "wasm"))]
use ureq::BodyReader;

use crate::error::{Error, Result};

/// The timeout of an event stream: twice the server's keep-alive interval, plus time for the
/// network.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(45);
/// The maximum length of a line; no line of an event comes close.
const LINE_BYTES_MAX: usize = 8 << 10;
/// The first and the longest pause: a restarted server is back within moments, and one that is down
/// for the night gets one request a minute.
const PAUSE_MS_MIN: u64 = 500;
const PAUSE_MS_MAX: u64 = 60_000;

/// An event of a server's event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The state of the vault.
    State(VaultState),
    /// A sign that the server is alive.
    KeepAlive,
    /// The end of the stream: the server stops, or no longer accepts this device.
    EndOfStream,
}

/// A decoder of the bytes of an event stream, split at any place.
#[derive(Debug, Default)]
pub struct EventStreamDecoder {
    line: Vec<u8>,
    reader: EventLineParser,
    heard: VecDeque<ServerEvent>,
}

impl EventStreamDecoder {
    /// Appends the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() >= LINE_BYTES_MAX {
                return Err(Error::Unreachable("invalid event stream".into()));
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let heard = self.decode_line(&line)?;
                self.heard.extend(heard);
            }
        }
        Ok(())
    }

    /// Returns the next event; it is never [`ServerEvent::EndOfStream`].
    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.heard.pop_front()
    }

    fn decode_line(&mut self, line: &[u8]) -> Result<Option<ServerEvent>> {
        let line =
            std::str::from_utf8(line).map_err(|reason| Error::Unreachable(reason.to_string()))?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.starts_with(':') {
            return Ok(Some(ServerEvent::KeepAlive));
        }
        let event = self.reader.push_line(line);
        let event =
            event.map_err(|reason| Error::Unreachable(format!("invalid event: {reason}")))?;
        Ok(event.map(ServerEvent::State))
    }
}

/// An open event stream.
#[cfg(not(target_family = "wasm"))]
pub struct EventStream {
    body: BodyReader<'static>,
    decoder: EventStreamDecoder,
}

#[cfg(not(target_family = "wasm"))]
impl EventStream {
    pub(crate) fn new(body: BodyReader<'static>) -> Self {
        Self { body, decoder: EventStreamDecoder::default() }
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<ServerEvent> {
        let mut chunk = [0; LINE_BYTES_MAX];
        loop {
            if let Some(heard) = self.decoder.next_event() {
                return Ok(heard);
            }
            let read = self.body.read(&mut chunk);
            match read.map_err(|source| Error::Unreachable(source.to_string()))? {
                0 => return Ok(ServerEvent::EndOfStream),
                count => self.decoder.push(&chunk[..count])?,
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// The pauses before failed requests are retried. Each is twice as long as the one before, and
/// randomly up to half shorter, so that all devices do not return at once when a server is back.
#[derive(Clone, Debug, Default)]
pub struct RetryBackoff {
    failures: u32,
}

impl RetryBackoff {
    /// Returns the next pause.
    pub fn next_delay(&mut self) -> Duration {
        let random = getrandom::u64().expect("the system gives random numbers");
        self.pause_with(random)
    }

    /// Makes the next pause the shortest again, after a success.
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
        let mut backoff = RetryBackoff::default();
        let longest: Vec<_> = (0..9).map(|_| backoff.pause_with(0).as_millis()).collect();
        assert_eq!(longest, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.pause_with(30_000).as_millis(), 30_000);
        backoff.reset();
        assert_eq!(backoff.pause_with(250).as_millis(), 250);
        for _ in 0..100 {
            let pause = backoff.next_delay().as_millis();
            assert!((500..=60_000).contains(&pause), "{pause}");
        }
    }
}
