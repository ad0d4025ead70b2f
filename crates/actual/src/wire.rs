//! The messages of `POST /sync/sync`: protobuf, and an answer that is written as it is read.
//!
//! The published schema calls `timestamp` a string; its bytes are the same on the wire, and are
//! checked where they become a [`Timestamp`].
//!
//! # Invariants
//! - Decoding from [`Bytes`] copies no timestamp and no content: they are parts of the request.
//! - A decoded request takes about as much memory as its bytes, whoever made them.
//! - [`put_message`] for each message, then [`put_merkle`], make the bytes of a
//!   [`ActualSyncResponse`].

#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use crdt::Timestamp;
use prost::encoding::{
    DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint, skip_field,
};
use prost::{DecodeError, Message};

/// Bytes of an envelope that has a canonical timestamp.
const ENVELOPE_BYTES_MIN: usize = 2 + Timestamp::TEXT_LENGTH;
/// Envelopes shorter than that which a request may have: what is wrong with them is found later.
const SHORT_ENVELOPES_MAX: usize = 1_000;

/// The media type of requests and answers.
pub const SYNC_MEDIA_TYPE: &str = "application/actual-sync";

/// One message.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MessageEnvelope {
    /// Text; canonical or not.
    #[prost(bytes = "bytes", tag = "1")]
    pub timestamp: Bytes,
    /// Whether the app encrypted the content.
    #[prost(bool, tag = "2")]
    pub is_encrypted: bool,
    /// The app's bytes.
    #[prost(bytes = "bytes", tag = "3")]
    pub content: Bytes,
}

impl MessageEnvelope {
    /// `None` if the text is not canonical.
    pub fn timestamp(&self) -> Option<Timestamp> {
        str::from_utf8(&self.timestamp).ok()?.parse().ok()
    }
}

/// What an app asks: a missing text is an empty one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActualSyncRequest {
    /// To be stored.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessageEnvelope>,
    /// The budget.
    #[prost(string, tag = "2")]
    pub file_id: String,
    /// The budget's messages since it was last reset.
    #[prost(string, tag = "3")]
    pub group_id: String,
    /// The key that the app encrypts with.
    #[prost(string, tag = "5")]
    pub key_id: String,
    /// Messages after this are wanted (`since::after`).
    #[prost(string, tag = "6")]
    pub since: String,
}

/// A request that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncRequestError {
    /// No protobuf, or not this one.
    #[error("the request is not a valid protobuf message: {0}")]
    Protobuf(#[from] DecodeError),
    /// They would take many times the memory of their bytes.
    #[error("the request has more than {SHORT_ENVELOPES_MAX} messages without a timestamp")]
    ShortEnvelopes,
}

impl ActualSyncRequest {
    /// Reads a request's body.
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

/// The answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActualSyncResponse {
    /// In order of their timestamps.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessageEnvelope>,
    /// The trie's JSON.
    #[prost(string, tag = "2")]
    pub merkle: String,
}

/// Appends a message of an answer.
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

/// Appends the trie's JSON to an answer.
pub fn put_merkle(out: &mut impl BufMut, json: &str) {
    put_bytes(out, 2, json.as_bytes());
}

/// A field; none if there are no bytes, as proto3 has it.
fn put_bytes(out: &mut impl BufMut, tag: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        encode_key(tag, WireType::LengthDelimited, out);
        encode_varint(bytes.len() as u64, out);
        out.put_slice(bytes);
    }
}
