use crdt::{NodeId, Timestamp};
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::de::DeserializeOwned;

use super::*;

fn message(millis: u64, content: &'static [u8]) -> WireMessage {
    let timestamp = Timestamp::new(millis, 7, NodeId(9)).unwrap();
    crdt::Message { timestamp, content: Bytes::from_static(content) }.into()
}

fn fingerprint() -> WireFingerprint {
    crdt::Fingerprint { count: 3, digest: 0xfeed << 64 }.into()
}

/// Checks that both encodings restore the value, and that `proto/warren.proto` has every field
/// under its name.
fn check<T>(proto_name: &str, value: &T)
where
    T: prost::Message + Default + PartialEq + Serialize + DeserializeOwned,
{
    let bytes = value.encode_to_vec();
    assert!(&T::decode(&bytes[..]).unwrap() == value, "{proto_name}: protobuf");
    let json = serde_json::to_value(value).unwrap();
    assert!(&serde_json::from_value::<T>(json.clone()).unwrap() == value, "{proto_name}: JSON");

    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto");
    let files = protox::compile(["warren.proto"], [schema]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let descriptor = pool.get_message_by_name(&format!("warren.v1.{proto_name}")).unwrap();
    let dynamic = DynamicMessage::decode(descriptor.clone(), &bytes[..]).unwrap();
    assert_eq!(dynamic.unknown_fields().count(), 0, "{proto_name}: a tag is not in the .proto");
    let fields: Vec<_> = dynamic.fields().map(|(field, _)| field.name().to_owned()).collect();
    let mut keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    keys.sort_by_key(|key| descriptor.get_field_by_name(key).unwrap().number());
    assert_eq!(fields, keys, "{proto_name}: the sample must fill every field");
    assert_eq!(
        descriptor.fields().len(),
        fields.len(),
        "{proto_name}: a field is only in the .proto"
    );
}

#[test]
fn erasures_agree_too() {
    let WireMessage { timestamp, content } = message(5, b"hello");
    let erasure = WireErasure { timestamp, content, hash: fingerprint().digest };
    check("Erasure", &erasure);
    let key_id = Bytes::from_static(b"8 bytes.");
    let request = EraseRequest { erasures: vec![erasure], password: "x".to_owned(), key_id };
    check("EraseRequest", &request);
}

#[test]
fn rust_types_json_and_the_proto_file_agree() {
    let messages = vec![message(5, b"hello"), message(6, b"\0\xff")];
    check("Message", &messages[0]);
    check("Fingerprint", &fingerprint());
    let key_id = || Bytes::from_static(b"8 bytes.");
    let mode = || Some(WireEncryptionMode { key_id: key_id() });
    check("EncryptionMode", &mode().unwrap());
    let request = PushRequest {
        messages: messages.clone(),
        key_id: key_id(),
        expected_cursor: Some(7),
        set_id: 8,
    };
    check("PushRequest", &request);
    let fingerprint = Some(fingerprint());
    let holds = fingerprint.clone();
    check("EnableE2eeRequest", &EnableE2eeRequest { key_id: key_id(), holds, start: true });
    let pushed = PushResponse {
        stored_count: 1,
        known_count: 2,
        cursor: 3,
        fingerprint: fingerprint.clone(),
        server_time_ms: 4,
        set_id: 5,
    };
    check("PushResponse", &pushed);
    let claim = WireRangeClaim { gap: 1, length: 2, count: 3, digest: 4, ids: vec![5, u64::MAX] };
    check("RangeClaim", &claim);
    check("ReconcileRequest", &ReconcileRequest { claims: vec![claim] });
    let bucket = WireRangeBucket { length: 1, count: 2, digest: 3 };
    check("RangeBucket", &bucket);
    let diff = WireRangeDiff {
        equal: true,
        buckets: vec![bucket],
        messages: messages.clone(),
        wanted: vec![6],
        examined_length: 7,
    };
    check("RangeDiff", &diff);
    let reconciled = ReconcileResponse {
        diffs: vec![diff],
        cursor: 1,
        fingerprint: fingerprint.clone(),
        server_time_ms: 2,
        set_id: 3,
    };
    check("ReconcileResponse", &reconciled);
    let pulled = PullResponse {
        messages,
        cursor: 1,
        more: true,
        fingerprint,
        server_time_ms: 2,
        encryption: mode(),
        set_id: 3,
        in_plain: true,
        loss: Some(ServerLoss {
            repaired_ms: 4,
            missing_count: Some(5),
            devices_away: vec!["phone".to_owned()],
        }),
    };
    check("ServerLoss", pulled.loss.as_ref().unwrap());
    check("PullResponse", &pulled);
}

#[test]
fn accounts_and_devices_agree_too() {
    let text = || "x".to_owned();
    let fingerprint = Some(fingerprint());
    let encryption = Some(WireEncryptionMode { key_id: Bytes::from_static(b"8 bytes.") });
    check("AccountRequest", &AccountRequest { login: text(), password: text() });
    check("AccountResponse", &AccountResponse { login: text() });
    let (login, new_password, revoke_others) = (text(), text(), true);
    let password = PasswordRequest { login, password: text(), new_password, revoke_others };
    check("PasswordRequest", &password);
    check(
        "RegisterDeviceRequest",
        &RegisterDeviceRequest { login: text(), password: text(), name: text() },
    );
    let registered = RegisterDeviceResponse { device_id: text(), token: text(), encryption };
    check("RegisterDeviceResponse", &registered);
    let device = DeviceInfo {
        device_id: text(),
        name: text(),
        cursor: 1,
        last_seen_ms: 2,
        created_ms: 3,
        current: true,
        node_id: text(),
        unsent_count: 4,
        pending_download_count: 5,
        registered_by: text(),
    };
    check("Device", &device);
    let devices = vec![device];
    check("DeviceList", &DeviceList { devices, cursor: 1, fingerprint, server_time_ms: 2 });
    check("ErrorResponse", &crate::ErrorResponse::new(crate::ErrorCode::Busy, "x"));
}

#[test]
fn json_shows_text_base64_and_hex() {
    let pulled = PullResponse {
        messages: vec![message(1_795_242_600_123, b"hello")],
        cursor: 1,
        more: false,
        fingerprint: Some(fingerprint()),
        server_time_ms: 2,
        encryption: Some(WireEncryptionMode {
            key_id: Bytes::from_static(&[0, 1, 2, 3, 4, 5, 6, 0xff]),
        }),
        set_id: 7,
        in_plain: false,
        loss: None,
    };
    let expected = concat!(
        r#"{"messages":[{"timestamp":"2026-11-21T06:30:00.123Z-0007-0000000000000009","content":"aGVsbG8="}],"#,
        r#""cursor":1,"more":false,"fingerprint":{"count":3,"digest":"000000000000feed0000000000000000"},"server_time_ms":2,"#,
        r#""encryption":{"key_id":"00010203040506ff"},"set_id":"0000000000000007","in_plain":false,"loss":null}"#,
    );
    assert_eq!(serde_json::to_string(&pulled).unwrap(), expected);
}

#[test]
fn a_timestamp_that_is_not_canonical_is_refused_at_the_one_check() {
    for text in ["", "now", "2026-11-21T06:30:00.123Z-00ab-a1b2c3d4e5f60718", "sixteen bytes ok"] {
        let json = serde_json::json!({"timestamp": text, "content": ""});
        let message: WireMessage = serde_json::from_value(json).unwrap();
        assert!(crdt::Message::try_from(message).is_err(), "{text:?}");
    }
}

#[test]
fn a_push_without_a_key_is_one_in_plain_and_a_key_has_16_digits() {
    let plain: PushRequest = serde_json::from_str(r#"{"messages":[]}"#).unwrap();
    assert_eq!(plain, PushRequest::default());
    for key_id in ["0", "00010203040506fg", "+0010203040506ff", "00010203040506ff00"] {
        let json = serde_json::json!({"key_id": key_id});
        assert_eq!(serde_json::from_value::<WireEncryptionMode>(json).ok(), None, "{key_id}");
    }
}

#[test]
fn secrets_do_not_print() {
    let request =
        RegisterDeviceRequest { login: "ada".into(), password: "sesame".into(), name: "x".into() };
    assert!(!format!("{request:?}").contains("sesame"));
}
