use crdt::NodeId;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::test_vectors::{hex, section, text};

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
        let request = ActualSyncRequest::from_body(bytes.clone()).unwrap();
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
        assert_eq!(ActualSyncResponse::decode(bytes).unwrap().merkle, text(&fields, "merkle"));
    }
}

#[test]
fn a_request_is_not_copied() {
    let messages = published_envelopes();
    let bytes =
        Bytes::from(ActualSyncRequest { messages, ..ActualSyncRequest::default() }.encode_to_vec());
    let range = bytes.as_ptr_range();
    let request = ActualSyncRequest::from_body(bytes.clone()).unwrap();
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
        assert!(ActualSyncRequest::from_body(Bytes::from_static(bytes)).is_err(), "{bytes:x?}");
    }
    // An empty body is a request without any fields: the caller checks what is missing.
    assert_eq!(ActualSyncRequest::from_body(Bytes::new()), Ok(ActualSyncRequest::default()));
}

#[test]
fn envelopes_without_a_timestamp_are_few() {
    let body = |count| Bytes::from(b"\x0a\x00".repeat(count));
    let few = ActualSyncRequest::from_body(body(SHORT_ENVELOPES_MAX)).unwrap();
    assert_eq!(few.messages, vec![MessageEnvelope::default(); SHORT_ENVELOPES_MAX]);
    let many = ActualSyncRequest::from_body(body(SHORT_ENVELOPES_MAX + 1));
    assert_eq!(many, Err(SyncRequestError::ShortEnvelopes));
    let other_fields = Bytes::from(b"\x12\x00".repeat(SHORT_ENVELOPES_MAX + 1));
    assert_eq!(ActualSyncRequest::from_body(other_fields), Ok(ActualSyncRequest::default()));
}

#[test]
fn envelopes_with_a_timestamp_are_as_many_as_there_are() {
    let timestamp = Bytes::copy_from_slice(&Timestamp::ZERO.to_text());
    let envelope = MessageEnvelope { timestamp, ..MessageEnvelope::default() };
    let messages = vec![envelope; SHORT_ENVELOPES_MAX + 1];
    let request = ActualSyncRequest { messages, ..ActualSyncRequest::default() };
    assert_eq!(ActualSyncRequest::from_body(Bytes::from(request.encode_to_vec())), Ok(request));
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
    let timestamp = timestamp
        .prop_map(|(millis, counter, node)| Timestamp::new(millis, counter, NodeId(node)).unwrap());
    vec((timestamp, any::<bool>(), vec(any::<u8>(), 0..300)), 0..10)
}

proptest! {
    #[test]
    fn an_answer_in_pieces_is_the_answer(messages in messages(), merkle: String) {
        let mut chunks = Vec::new();
        let mut whole = ActualSyncResponse { merkle, messages: Vec::new() };
        for (timestamp, is_encrypted, content) in messages {
            put_message(&mut chunks, timestamp, is_encrypted, &content);
            let timestamp = timestamp.to_string().into();
            let content = content.into();
            whole.messages.push(MessageEnvelope { timestamp, is_encrypted, content });
        }
        put_merkle(&mut chunks, &whole.merkle);
        prop_assert_eq!(chunks, whole.encode_to_vec());
    }

    #[test]
    fn any_bytes_are_refused_or_a_request(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(request) = ActualSyncRequest::from_body(Bytes::from(bytes)) {
            let again = ActualSyncRequest::from_body(Bytes::from(request.encode_to_vec()));
            prop_assert_eq!(again, Ok(request));
        }
    }
}
