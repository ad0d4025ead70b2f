//! Encodes and parses the events of `GET /v1/sync/events`: Server-Sent Events (WHATWG HTML §9.2) of
//! one kind.
//!
//! ```text
//! event: cursor
//! id: 1041
//! data: {"cursor":1041,"count":1041,"digest":"…"}
//! ```
//!
//! Lines that begin with a colon are comments: keep-alives between events.
//!
//! # Not here
//! - Reading lines from a connection, and its timeouts → `replica::EventStream`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";
/// The name of the only kind of event.
const CURSOR: &str = "cursor";
/// The maximum bytes of an event's data: three members take about a hundred.
const DATA_BYTES_MAX: usize = 4 << 10;

/// The state of a vault, sent as an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VaultState {
    /// The newest sequence number of the vault.
    pub cursor: u64,
    /// The number of messages in the vault's set.
    pub count: u64,
    /// The digest of the messages: 16 bytes, big-endian; in JSON 32 hex digits.
    #[serde(with = "crate::json::digest")]
    #[schema(value_type = String, example = "00000000000000000000000000000000")]
    pub digest: Bytes,
}

impl VaultState {
    /// Creates the state of a vault with this newest sequence number and this set.
    pub fn new(cursor: u64, fingerprint: crdt::Fingerprint) -> Self {
        let digest = Bytes::copy_from_slice(&fingerprint.digest_bytes());
        Self { cursor, count: fingerprint.count, digest }
    }

    /// Returns the event that announces this state.
    pub fn to_event(&self) -> String {
        let data = serde_json::to_string(self).expect("a digest has 16 bytes");
        format!("event: {CURSOR}\nid: {}\ndata: {data}\n\n", self.cursor)
    }
}

/// A parser that assembles events from lines. It skips events of kinds that this version lacks.
#[derive(Clone, Debug, Default)]
pub struct EventLineParser {
    name: String,
    data: String,
}

impl EventLineParser {
    /// Adds a line without its end. Returns the event that it completes; the error is for people.
    pub fn push_line(&mut self, line: &str) -> Result<Option<VaultState>, String> {
        if line.is_empty() {
            return self.complete();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" if self.data.len() + value.len() > DATA_BYTES_MAX => {
                return Err(format!("the event is larger than {DATA_BYTES_MAX} bytes"));
            }
            "data" => self.data.push_str(value),
            // Comments, ids and fields of later versions are ignored.
            _ => {}
        }
        Ok(None)
    }

    fn complete(&mut self) -> Result<Option<VaultState>, String> {
        let Self { name, data } = std::mem::take(self);
        if name != CURSOR || data.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&data).map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(cursor: u64) -> VaultState {
        VaultState::new(cursor, crdt::Fingerprint { count: cursor + 1, digest: 0xfeed << 64 })
    }

    /// Checks the events that a parser finds in a stream.
    fn check(text: &str, expected: &[VaultState]) {
        let mut reader = EventLineParser::default();
        let read = text.split('\n').filter_map(|line| reader.push_line(line).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn events_read_back_and_what_is_between_them_does_not_matter() {
        assert_eq!(
            state(7).to_event(),
            "event: cursor\nid: 7\ndata: {\"cursor\":7,\"count\":8,\
             \"digest\":\"000000000000feed0000000000000000\"}\n\n"
        );
        let (one, two) = (state(1).to_event(), state(u64::MAX - 1).to_event());
        check(&format!("{one}:\n\n{two}"), &[state(1), state(u64::MAX - 1)]);
        check(&format!(": hello\n\nretry: 5\n{one}"), &[state(1)]);
        check(&format!("event: other\ndata: x\n\n{one}\n\n"), &[state(1)]);
        check("data: {}\n\nevent: cursor\n\n", &[]);
        // An event is complete only with its empty line.
        check(one.trim_end(), &[]);
    }

    #[test]
    fn nonsense_is_refused_within_limits() {
        let mut reader = EventLineParser::default();
        reader.push_line("event: cursor").unwrap();
        reader.push_line("data: {\"cursor\":-1}").unwrap();
        reader.push_line("").unwrap_err();
        assert_eq!(reader.push_line(""), Ok(None), "a fresh start");
        let long = format!("data: {}", "x".repeat(3_000));
        reader.push_line(&long).unwrap();
        reader.push_line(&long).unwrap_err();
    }
}
