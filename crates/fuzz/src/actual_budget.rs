//! Fuzz targets for data that Actual's apps send, and for the records that Warren stores of it.

use actual::content;
use actual::export::BudgetArchive;
use actual::gateway_state::{BudgetState, OwnerState, repair_gateway_state};
use actual::trie::MerkleTrie;
use actual::wire::{ActualSyncRequest, MessageEnvelope};
use bytes::Bytes;
use prost::Message as _;
use serde_json::{Map, Value};

use crate::stored_formats;

pub(crate) fn sync_requests(bytes: &[u8]) {
    let Ok(request) = ActualSyncRequest::from_body(Bytes::copy_from_slice(bytes)) else { return };
    for envelope in &request.messages {
        if let Some(timestamp) = envelope.timestamp() {
            assert_eq!(timestamp.to_text()[..], envelope.timestamp);
        }
        let packed = content::pack(envelope.is_encrypted, &envelope.content);
        let unpacked = content::unpack(&packed);
        assert_eq!(unpacked.ok(), Some((envelope.is_encrypted, envelope.content.clone())));
    }
    drop(content::unpack(&Bytes::copy_from_slice(bytes)));
}

pub(crate) fn tries(bytes: &[u8]) {
    if let Ok(trie) = MerkleTrie::decode(bytes) {
        let mut encoded = Vec::new();
        trie.encode(&mut encoded);
        assert_eq!(encoded, bytes, "a trie has one encoding");
        let (mut whole, mut streamed) = (String::new(), String::new());
        trie.write_json(&mut whole);
        MerkleTrie::write_json_of(bytes, &mut streamed)
            .expect("what can be decoded can be written");
        assert_eq!(streamed, whole);
        assert_eq!(MerkleTrie::root_of(bytes).ok(), Some(trie.root()));
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(mut trie) = MerkleTrie::from_json(text) else { return };
    let mut written = String::new();
    trie.write_json(&mut written);
    let mut again = String::new();
    MerkleTrie::from_json(&written).expect("what was written can be read").write_json(&mut again);
    assert_eq!(again, written);
    trie.insert(stored_formats::timestamp(1, 1));
    trie.prune();
}

pub(crate) fn records(bytes: &[u8]) {
    if let Ok(Some((budget, trie))) = BudgetState::decode_record(bytes) {
        let mut encoded = Vec::new();
        budget.encode_header(&mut encoded);
        encoded.extend_from_slice(trie);
        let again = BudgetState::decode_record(&encoded).expect("what was written can be read");
        assert_eq!(again, Some((budget, trie)));
    }
    if let Ok(Some(owner)) = OwnerState::decode_record(bytes) {
        assert_eq!(OwnerState::decode_record(&owner.encode_record()), Ok(Some(owner)));
    }
    drop(repair_gateway_state(bytes, &[stored_formats::timestamp(1, 1)]));
}

pub(crate) fn archives(bytes: &[u8]) {
    let Ok(archive) = BudgetArchive::read(bytes) else { return };
    let written = archive.write().expect("what was read is not too large");
    assert!(BudgetArchive::read(&written).is_ok());
}

fn trie() -> MerkleTrie {
    let mut trie = MerkleTrie::new();
    for minutes in [0, 1, 7, 90, 50_000] {
        trie.insert(stored_formats::timestamp(minutes * 60_000, 1));
    }
    trie
}

pub(crate) fn request_seeds() -> Vec<Vec<u8>> {
    let timestamp = Bytes::copy_from_slice(&stored_formats::timestamp(1, 1).to_text());
    let envelope =
        MessageEnvelope { timestamp, is_encrypted: true, content: Bytes::from_static(b"content") };
    let plain = MessageEnvelope { is_encrypted: false, ..envelope.clone() };
    let request = ActualSyncRequest {
        messages: vec![envelope, plain],
        file_id: "file".into(),
        group_id: "group".into(),
        ..ActualSyncRequest::default()
    };
    vec![request.encode_to_vec()]
}

pub(crate) fn trie_seeds() -> Vec<Vec<u8>> {
    let (mut json, mut binary) = (String::new(), Vec::new());
    trie().write_json(&mut json);
    trie().encode(&mut binary);
    vec![json.into_bytes(), binary, b"{}".to_vec()]
}

pub(crate) fn record_seeds() -> Vec<Vec<u8>> {
    let mut budget = Vec::new();
    let named = BudgetState { name: Some("Home".into()), ..BudgetState::default() };
    named.encode_header(&mut budget);
    trie().encode(&mut budget);
    vec![budget, OwnerState::default().encode_record()]
}

pub(crate) fn archive_seeds() -> Vec<Vec<u8>> {
    let metadata = Map::from_iter([("budgetName".to_owned(), Value::from("Home"))]);
    let archive = BudgetArchive { database: b"SQLite format 3".to_vec(), metadata };
    vec![archive.write().expect("it is small")]
}
