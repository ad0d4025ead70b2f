//! Encodes and decodes the protobuf messages of `POST /sync/sync`; a response is written while it
//! is read.
//!
//! The published schema calls `timestamp` a string; its bytes are the same on the wire, and are
//! checked where they become a [`Timestamp`].
//!
//! # Invariants
//! - Decoding from [`Bytes`] copies no timestamp and no content: they are parts of the request.
//! - A decoded request takes about as much memory as its bytes, even if they are malicious.
//! - [`put_message`] for each message, then [`put_merkle`], write the bytes of an
//!   [`ActualSyncResponse`].

#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use crdt::Timestamp;
use prost::encoding::{
    DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint, skip_field,
};
use prost::{DecodeError, Message};

/// The minimum size of an envelope that has a canonical timestamp.
const ENVELOPE_BYTES_MIN: usize = 2 + Timestamp::TEXT_LENGTH;
/// The number of shorter envelopes that a request may have; later code reports what is wrong with
/// them.
const SHORT_ENVELOPES_MAX: usize = 1_000;

/// The media type of requests and responses.
pub const SYNC_MEDIA_TYPE: &str = "application/actual-sync";

/// A message in a request or response.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MessageEnvelope {
    /// The timestamp as text, canonical or not.
    #[prost(bytes = "bytes", tag = "1")]
    pub timestamp: Bytes,
    /// Whether the app encrypted the content.
    #[prost(bool, tag = "2")]
    pub is_encrypted: bool,
    /// The content, in the app's bytes.
    #[prost(bytes = "bytes", tag = "3")]
    pub content: Bytes,
}

impl MessageEnvelope {
    /// Parses the timestamp; `None` if the text is not canonical.
    pub fn timestamp(&self) -> Option<Timestamp> {
        str::from_utf8(&self.timestamp).ok()?.parse().ok()
    }
}

/// A request from an app. A missing text is an empty one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActualSyncRequest {
    /// The messages to store.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessageEnvelope>,
    /// The file id of the budget.
    #[prost(string, tag = "2")]
    pub file_id: String,
    /// The id of the budget's messages since the last reset.
    #[prost(string, tag = "3")]
    pub group_id: String,
    /// The id of the key that the app encrypts with.
    #[prost(string, tag = "5")]
    pub key_id: String,
    /// The text after which messages are requested ([`since::after`](crate::since::after)).
    #[prost(string, tag = "6")]
    pub since: String,
}

/// An error for a request that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncRequestError {
    /// The body is not protobuf, or not this message.
    #[error("the request is not a valid protobuf message: {0}")]
    Protobuf(#[from] DecodeError),
    /// The request has too many short envelopes, which would take many times the memory of their
    /// bytes.
    #[error("the request has more than {SHORT_ENVELOPES_MAX} messages without a timestamp")]
    ShortEnvelopes,
}

impl ActualSyncRequest {
    /// Decodes the body of a request.
    pub fn from_body(body: Bytes) -> Result<Self, SyncRequestError> {
        let mut rest = &body[..];
        let mut short_envelopes = 0;
        while !rest.is_empty() {
            let (tag, wire_type) = decode_key(&mut rest)?;
            let before = rest.len();
            skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
            if tag == 1 && before - rest.len() < ENVELOPE_BYTES_MIN {
                short_envelopes += 1;
            }
        }
        if short_envelopes > SHORT_ENVELOPES_MAX {
            return Err(SyncRequestError::ShortEnvelopes);
        }
        Ok(Self::decode(body)?)
    }
}

/// A response to an app.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActualSyncResponse {
    /// The messages, in order of their timestamps.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessageEnvelope>,
    /// The JSON of the trie.
    #[prost(string, tag = "2")]
    pub merkle: String,
}

/// Appends a message of a response.
pub fn put_message(
    out: &mut impl BufMut,
    timestamp: Timestamp,
    is_encrypted: bool,
    content: &[u8],
) {
    let field = |length: usize| 1 + encoded_len_varint(length as u64) + length;
    let flag_bytes = if is_encrypted { 2 } else { 0 };
    let content_bytes = if content.is_empty() { 0 } else { field(content.len()) };
    encode_key(1, WireType::LengthDelimited, out);
    encode_varint((field(Timestamp::TEXT_LENGTH) + flag_bytes + content_bytes) as u64, out);
    put_bytes(out, 1, &timestamp.to_text());
    if is_encrypted {
        encode_key(2, WireType::Varint, out);
        encode_varint(1, out);
    }
    put_bytes(out, 3, content);
}

/// Appends the JSON of the trie to a response.
pub fn put_merkle(out: &mut impl BufMut, json: &str) {
    put_bytes(out, 2, json.as_bytes());
}

/// Appends a field, unless it has no bytes, as in proto3.
fn put_bytes(out: &mut impl BufMut, tag: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        encode_key(tag, WireType::LengthDelimited, out);
        encode_varint(bytes.len() as u64, out);
        out.put_slice(bytes);
    }
}
