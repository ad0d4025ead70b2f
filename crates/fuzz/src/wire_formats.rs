//! Fuzz targets for data that devices and servers send each other: protobuf, JSON, streams of
//! pages, events.

use bytes::Bytes;
use prost::Message as _;
use protocol::{
    AccountRequest, AccountResponse, DeviceList, EnableE2eeRequest, EraseRequest, ErrorResponse,
    EventLineParser, PasswordRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse, VaultState, WireFingerprint,
    WireMessage, WireRangeBucket, WireRangeClaim, WireRangeDiff,
};
use replica::PageDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::stored_formats;

pub(crate) fn protobuf(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 11 {
        0 => decoded::<PushRequest>(bytes),
        1 => decoded::<PushResponse>(bytes),
        2 => decoded::<PullResponse>(bytes),
        3 => decoded::<ReconcileRequest>(bytes),
        4 => decoded::<ReconcileResponse>(bytes),
        5 => decoded::<DeviceList>(bytes),
        6 => decoded::<RegisterDeviceRequest>(bytes),
        7 => decoded::<PasswordRequest>(bytes),
        8 => decoded::<RegisterDeviceResponse>(bytes),
        9 => decoded::<EnableE2eeRequest>(bytes),
        _ => decoded::<EraseRequest>(bytes),
    }
}

/// Checks that a decoded message is the same after it was encoded again.
fn decoded<M: prost::Message + Default + PartialEq>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let again = M::decode(&message.encode_to_vec()[..]);
    assert!(again.is_ok_and(|again| again == message), "written back, it is another");
}

pub(crate) fn json(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 14 {
        0 => parsed::<PushRequest>(bytes),
        1 => parsed::<PushResponse>(bytes),
        2 => parsed::<PullResponse>(bytes),
        3 => parsed::<ReconcileRequest>(bytes),
        4 => parsed::<ReconcileResponse>(bytes),
        5 => parsed::<DeviceList>(bytes),
        6 => parsed::<RegisterDeviceRequest>(bytes),
        7 => parsed::<PasswordRequest>(bytes),
        8 => parsed::<RegisterDeviceResponse>(bytes),
        9 => parsed::<EnableE2eeRequest>(bytes),
        10 => parsed::<AccountRequest>(bytes),
        11 => parsed::<ErrorResponse>(bytes),
        12 => parsed::<EraseRequest>(bytes),
        _ => parsed::<AccountResponse>(bytes),
    }
}

fn parsed<T: DeserializeOwned + Serialize>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    // A text that is not a timestamp is refused where timestamps are checked, not here.
    let Ok(text) = serde_json::to_string(&value) else { return };
    let again: T = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).ok(), Some(text));
}

/// Decodes a stream of pages. The first byte sets the size of the pieces into which it is cut,
/// which must not matter.
pub(crate) fn pages(bytes: &[u8]) {
    let Some((&piece, stream)) = bytes.split_first() else { return };
    let whole = read_pages(&[stream]);
    let pieces: Vec<_> = stream.chunks(usize::from(piece) + 1).collect();
    assert_eq!(read_pages(&pieces), whole);
}

/// Returns the pages, and whether the stream ended well.
fn read_pages(pieces: &[&[u8]]) -> (Vec<PullResponse>, bool) {
    let (mut decoder, mut pages) = (PageDecoder::default(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.page() {
                Ok(Some(page)) => pages.push(page),
                Ok(None) => break,
                Err(_) => return (pages, false),
            }
        }
    }
    let is_whole = decoder.end().is_ok();
    (pages, is_whole)
}

pub(crate) fn events(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut reader = EventLineParser::default();
    for state in text.lines().filter_map(|line| reader.push_line(line).ok().flatten()) {
        let event = state.to_event();
        let mut reader = EventLineParser::default();
        let read = event.lines().find_map(|line| reader.push_line(line).ok().flatten());
        assert_eq!(read, Some(state));
    }
}

fn fingerprint() -> WireFingerprint {
    WireFingerprint { count: 5, digest: Bytes::from_static(&[9; 16]) }
}

fn messages() -> Vec<WireMessage> {
    let changes = stored_formats::changes();
    let stamped = changes.iter().zip(1..).map(|(change, place)| {
        crdt::Message { timestamp: stored_formats::timestamp(place, 7), content: change.encode() }
            .into()
    });
    stamped.collect()
}

pub(crate) fn pull_response() -> PullResponse {
    let (fingerprint, now_ms) = (Some(fingerprint()), stored_formats::MORNING_MS);
    PullResponse {
        messages: messages(),
        cursor: 5,
        fingerprint,
        server_time_ms: now_ms,
        ..PullResponse::default()
    }
}

pub(crate) fn push_response() -> PushResponse {
    let (fingerprint, now_ms) = (Some(fingerprint()), stored_formats::MORNING_MS);
    PushResponse {
        stored_count: 1,
        cursor: 6,
        fingerprint,
        server_time_ms: now_ms,
        ..PushResponse::default()
    }
}

pub(crate) fn reconcile_response() -> ReconcileResponse {
    let (fingerprint, now_ms) = (Some(fingerprint()), stored_formats::MORNING_MS);
    let part = WireRangeBucket { length: 1 << 40, count: 2, digest: 77 };
    let findings = vec![
        WireRangeDiff { equal: true, ..WireRangeDiff::default() },
        WireRangeDiff { buckets: vec![part, part], ..WireRangeDiff::default() },
        WireRangeDiff {
            messages: messages(),
            wanted: vec![1, 2],
            examined_length: 9,
            ..WireRangeDiff::default()
        },
    ];
    ReconcileResponse { diffs: findings, cursor: 5, fingerprint, server_time_ms: now_ms, set_id: 7 }
}

fn reconcile_request() -> ReconcileRequest {
    let sum = WireRangeClaim { gap: 0, length: 1 << 40, count: 2, digest: 77, ids: vec![] };
    let listed =
        WireRangeClaim { gap: 1, length: u64::MAX >> 1, count: 0, digest: 0, ids: vec![3, 4] };
    ReconcileRequest { claims: vec![sum, listed] }
}

fn client_request() -> RegisterDeviceRequest {
    RegisterDeviceRequest { login: "ada".into(), password: "sesame".into(), name: "laptop".into() }
}

fn client_response() -> RegisterDeviceResponse {
    let form = Some(protocol::WireEncryptionMode { key_id: Bytes::from_static(b"8 bytes.") });
    RegisterDeviceResponse { device_id: "1".into(), token: "token".into(), encryption: form }
}

/// Encodes a message after the number of its kind.
fn encoded(kind: u8, message: &impl prost::Message) -> Vec<u8> {
    [vec![kind], message.encode_to_vec()].concat()
}

fn written(kind: u8, value: &impl Serialize) -> Vec<u8> {
    [vec![kind], serde_json::to_vec(value).expect("a wire type can be written")].concat()
}

macro_rules! of_each_kind {
    ($form:ident) => {
        vec![
            $form(0, &PushRequest { messages: messages(), ..PushRequest::default() }),
            $form(1, &push_response()),
            $form(2, &pull_response()),
            $form(3, &reconcile_request()),
            $form(4, &reconcile_response()),
            $form(6, &client_request()),
            $form(8, &client_response()),
        ]
    };
}

pub(crate) fn protobuf_seeds() -> Vec<Vec<u8>> {
    of_each_kind!(encoded)
}

pub(crate) fn json_seeds() -> Vec<Vec<u8>> {
    of_each_kind!(written)
}

pub(crate) fn page_seeds() -> Vec<Vec<u8>> {
    let page = pull_response().encode_length_delimited_to_vec();
    vec![[&[3], &page[..], &page[..]].concat(), vec![0, 0xff, 0xff, 0xff, 0xff, 0x7f]]
}

pub(crate) fn event_seeds() -> Vec<Vec<u8>> {
    let state = VaultState::new(7, crdt::Fingerprint { count: 8, digest: 1 });
    let comments = ": beat\r\n\nretry: 5\nevent: other\ndata: 1\n\n";
    vec![format!("{comments}{}", state.to_event()).into_bytes()]
}
