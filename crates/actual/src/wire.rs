//! The messages of `POST /sync/sync`: protobuf, and an answer that is written as it is read.
//!
//! The published schema calls `timestamp` a string; its bytes are the same on the wire, and are
//! checked where they become a [`Timestamp`].
//!
//! # Invariants
//! - Decoding from [`Bytes`] copies no timestamp and no content: they are parts of the request.
//! - [`put_message`] for each message, then [`put_merkle`], make the bytes of a [`SyncResponse`].

use bytes::{BufMut, Bytes};
use crdt::Timestamp;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

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
pub struct SyncRequest {
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

/// The answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SyncResponse {
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

#[cfg(test)]
mod tests {
    use crdt::Node;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use prost::Message as _;
    use serde_json::Value;

    use super::*;
    use crate::published::{hex, section, text};

    fn cases(name: &str) -> Vec<(Value, Bytes)> {
        let cases = section("protobuf").into_iter().filter(|case| case["type"] == name);
        cases.map(|mut case| (case["json"].take(), Bytes::from(hex(&case, "hex")))).collect()
    }

    fn published_envelopes() -> Vec<MessageEnvelope> {
        let cases = cases("MessageEnvelope");
        cases.into_iter().map(|(_, bytes)| MessageEnvelope::decode(bytes).unwrap()).collect()
    }

    #[test]
    fn published_envelopes_are_read_and_written() {
        let cases = cases("MessageEnvelope");
        assert_eq!(cases.len(), 2);
        for (fields, bytes) in cases {
            let envelope = MessageEnvelope::decode(bytes.clone()).unwrap();
            assert_eq!(envelope.timestamp, text(&fields, "timestamp"));
            assert_eq!(envelope.timestamp(), text(&fields, "timestamp").parse().ok());
            assert_eq!(envelope.is_encrypted, fields["isEncrypted"]);
            assert_eq!(envelope.content, hex(&fields, "content"));
            assert_eq!(envelope.encode_to_vec(), bytes);
        }
    }

    #[test]
    fn published_requests_are_read_and_written() {
        for (fields, bytes) in cases("SyncRequest") {
            let request = SyncRequest::decode(bytes.clone()).unwrap();
            let count = fields["messages"].as_u64().unwrap();
            let envelopes = published_envelopes();
            assert_eq!(request.messages, envelopes[..usize::try_from(count).unwrap()]);
            assert_eq!(request.file_id, text(&fields, "fileId"));
            assert_eq!(request.group_id, text(&fields, "groupId"));
            assert_eq!(request.key_id, text(&fields, "keyId"));
            assert_eq!(request.since, text(&fields, "since"));
            assert_eq!(request.encode_to_vec(), bytes);
        }
    }

    #[test]
    fn published_answers_are_written_piece_by_piece() {
        for (fields, bytes) in cases("SyncResponse") {
            let count = fields["messages"].as_u64().unwrap();
            let mut answer = Vec::new();
            for envelope in &published_envelopes()[..usize::try_from(count).unwrap()] {
                let timestamp = envelope.timestamp().unwrap();
                put_message(&mut answer, timestamp, envelope.is_encrypted, &envelope.content);
            }
            put_merkle(&mut answer, text(&fields, "merkle"));
            assert_eq!(answer, bytes);
            assert_eq!(SyncResponse::decode(bytes).unwrap().merkle, text(&fields, "merkle"));
        }
    }

    #[test]
    fn a_request_is_not_copied() {
        let messages = published_envelopes();
        let bytes = Bytes::from(SyncRequest { messages, ..SyncRequest::default() }.encode_to_vec());
        let range = bytes.as_ptr_range();
        let request = SyncRequest::decode(bytes.clone()).unwrap();
        assert_eq!(request.messages.len(), 2);
        for envelope in &request.messages {
            assert!(range.contains(&envelope.timestamp.as_ptr()));
            assert!(range.contains(&envelope.content.as_ptr()));
        }
    }

    #[test]
    fn undecodable_requests_are_errors() {
        for bytes in [
            // A field that ends before its length, in the request and in an envelope.
            &b"\x32\x05ab"[..],
            b"\x0a\x02\x1a\x05",
            // A text that is not UTF-8, a wrong wire type, a key without an end.
            b"\x32\x01\xff",
            b"\x30\x01",
            b"\xff",
            b"not protobuf",
        ] {
            assert!(SyncRequest::decode(Bytes::from_static(bytes)).is_err(), "{bytes:x?}");
        }
        // No bytes are a request without anything: what it lacks is for the caller to say.
        assert_eq!(SyncRequest::decode(Bytes::new()), Ok(SyncRequest::default()));
    }

    #[test]
    fn timestamps_that_are_not_canonical_are_none() {
        for text in [&b"2024-03-05T10:20:30.123Z-00ab-dddddddddddddddd"[..], b"", b"\xff\xfe"] {
            let timestamp = Bytes::from_static(text);
            let envelope = MessageEnvelope { timestamp, ..MessageEnvelope::default() };
            assert_eq!(envelope.timestamp(), None, "{text:x?}");
        }
    }

    fn messages() -> impl Strategy<Value = Vec<(Timestamp, bool, Vec<u8>)>> {
        let timestamp = (0..=Timestamp::MILLIS_MAX, any::<u16>(), any::<u64>());
        let timestamp = timestamp.prop_map(|(millis, counter, node)| {
            Timestamp::new(millis, counter, Node(node)).unwrap()
        });
        vec((timestamp, any::<bool>(), vec(any::<u8>(), 0..300)), 0..10)
    }

    proptest! {
        #[test]
        fn an_answer_in_pieces_is_the_answer(messages in messages(), merkle: String) {
            let mut pieces = Vec::new();
            let mut whole = SyncResponse { merkle, messages: Vec::new() };
            for (timestamp, is_encrypted, content) in messages {
                put_message(&mut pieces, timestamp, is_encrypted, &content);
                let timestamp = timestamp.to_string().into();
                let content = content.into();
                whole.messages.push(MessageEnvelope { timestamp, is_encrypted, content });
            }
            put_merkle(&mut pieces, &whole.merkle);
            prop_assert_eq!(pieces, whole.encode_to_vec());
        }

        #[test]
        fn any_bytes_are_refused_or_a_request(bytes in vec(any::<u8>(), 0..80)) {
            if let Ok(request) = SyncRequest::decode(Bytes::from(bytes)) {
                let again = SyncRequest::decode(Bytes::from(request.encode_to_vec()));
                prop_assert_eq!(again, Ok(request));
            }
        }
    }
}
