//! Fuzz targets for data that devices and servers store: contents, keys, sealed contents, deliveries
//! of mail, timestamps, phrases.

use std::collections::BTreeSet;

use bytes::Bytes;
use crdt::{
    CellWrite, Change, Collation, ColumnDeclaration, ColumnDefault, ForeignKeyAction,
    ForeignKeyDeclaration, IndexDeclaration, LargeValue, LeftOut, LeftOutKind, NodeId, SealKey,
    TableDeclaration, Timestamp, Value, sealing_key_id,
};
use mail_store::{ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX, MailDelivery};
use replica::RecoveryPhrase;
use zeroize::Zeroizing;

/// 2026-11-21T08:00:00Z, the time of the targets' clocks.
pub(crate) const MORNING_MS: u64 = 1_795_248_000_000;

pub(crate) fn contents(bytes: &[u8]) {
    if let Ok(change) = Change::decode(bytes) {
        assert_eq!(change.encode(), bytes, "equal changes have equal bytes: {change:?}");
        assert!(change.replaced().count() <= bytes.len(), "an element takes a byte at least");
    }
}

pub(crate) fn keys(bytes: &[u8]) {
    if let Ok(key) = Value::decode_key(bytes) {
        assert_eq!(Value::encode_key(&key), bytes, "{key:?}");
    }
}

/// Opens a content. The first byte decides whether a holder of the key sealed it; its timestamp
/// follows.
pub(crate) fn sealed(bytes: &[u8]) {
    let Some((&is_true, rest)) = bytes.split_first() else { return };
    let key = SealKey::new(Zeroizing::new([7; 32]));
    let (first, content) = rest.split_at(rest.len().min(Timestamp::BYTES));
    let Ok(timestamp) = Timestamp::from_bytes(first) else { return };
    assert!(sealing_key_id(content).is_none_or(|id| content[1..].starts_with(&id)));
    if is_true % 2 == 0 {
        // One genuine content is among the seeds, and the search may find its timestamp.
        let is_forged = (timestamp, content) != (self::timestamp(1, 1), &*sealed_content(&key));
        assert!(!is_forged || key.open(timestamp, content).is_err(), "a forged content opened");
        return;
    }
    let sealed = key.seal(timestamp, content, [1; 8]);
    assert_eq!(key.open(timestamp, &sealed).as_deref(), Ok(content));
    let place = usize::from(is_true / 2) % sealed.len();
    let mut changed = sealed.to_vec();
    changed[place] ^= 1;
    assert!(key.open(timestamp, &changed).is_err(), "a content with a changed byte opened");
    assert!(key.open(timestamp, &sealed[..place]).is_err(), "a content that is cut off opened");
}

/// Reads the plaintext of a delivery, which anyone with a public key can seal.
pub(crate) fn deliveries(bytes: &[u8]) {
    if let Ok(delivery) = MailDelivery::decode(bytes) {
        assert!(delivery.sender.len() <= ADDRESS_BYTES_MAX);
        assert!(delivery.recipient.len() <= ADDRESS_BYTES_MAX);
        assert!(delivery.message.len() <= MESSAGE_BYTES_MAX);
    }
}

pub(crate) fn timestamps(bytes: &[u8]) {
    if let Ok(timestamp) = Timestamp::from_bytes(bytes) {
        assert_eq!(timestamp.to_bytes(), bytes);
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        assert_eq!(timestamp.to_string(), text, "a timestamp has one text");
    }
}

pub(crate) fn phrases(bytes: &[u8]) {
    let Ok(words) = str::from_utf8(bytes) else { return };
    if let Ok(phrase) = RecoveryPhrase::parse(words) {
        let written: Vec<_> = words.split_whitespace().map(str::to_lowercase).collect();
        assert_eq!(*phrase.words(), written.join(" "));
    }
}

pub(crate) fn timestamp(place: u64, node: u64) -> Timestamp {
    Timestamp::new(MORNING_MS + place, 0, NodeId(node)).expect("a day of this century")
}

/// Returns one change of each kind, with one value of each storage class.
pub(crate) fn changes() -> Vec<Change> {
    let table = || "booking".to_owned();
    let key = || vec![Value::Text("a".into())];
    let part = vec![7; 40];
    let values = [
        Value::Null,
        Value::Integer(-2),
        Value::Real(2.5),
        Value::Text("b".into()),
        Value::Blob(vec![1, 0]),
        Value::from_text_bytes(b"\xff"),
        Value::Large(LargeValue::from_value(&Value::Blob(part.clone())).expect("it has bytes")),
        Value::Erased,
    ];
    let columns = ["room", "days", "who", "active", "note", "raw", "large", "erased"];
    let mut cells: Vec<_> = columns
        .into_iter()
        .zip(values)
        .map(|(column, value)| CellWrite::new(column, value))
        .collect();
    cells[1].replaced = Some(timestamp(1, 1));
    let seen: BTreeSet<_> = [timestamp(1, 1), timestamp(2, 1), timestamp(2, 3)].into();
    vec![
        Change::Write { table: table(), key: key(), cells, replaced_tombstone: None },
        Change::Write {
            table: "room".into(),
            key: vec![Value::Integer(1)],
            cells: vec![CellWrite::new("name", Value::Text("hall".into()))],
            replaced_tombstone: Some(timestamp(3, 1)),
        },
        Change::Delete { table: table(), key: key(), replaced: seen },
        Change::Chunk { bytes: part },
        Change::Erased,
        Change::TableDeclaration { table: "other".into(), declaration: declaration() },
        Change::TableDeclaration { table: "room".into(), declaration: declaration() },
    ]
}

/// Returns a declaration that uses every part of the format.
fn declaration() -> TableDeclaration {
    let column = |name: &str, declared_type: &str| ColumnDeclaration {
        name: name.into(),
        declared_type: declared_type.into(),
        ..ColumnDeclaration::default()
    };
    let id = ColumnDeclaration { is_not_null: true, ..column("id", "INTEGER") };
    let title = ColumnDeclaration {
        collation: Collation::NoCase,
        default: Some(ColumnDefault::Literal(Value::Text("new".into()))),
        ..column("title", "VARCHAR(20)")
    };
    let made =
        ColumnDeclaration { default: Some(ColumnDefault::Timestamp), ..column("made", "TEXT") };
    let room = column("room", "INTEGER");
    let index = IndexDeclaration {
        name: "by_title".into(),
        is_unique: true,
        columns: vec![(1, Collation::NoCase), (2, Collation::Binary)],
    };
    let reference = ForeignKeyDeclaration {
        columns: vec![3],
        parent: "room".into(),
        parent_columns: vec!["id".into()],
        on_delete: ForeignKeyAction::Cascade,
        on_update: ForeignKeyAction::SetNull,
    };
    TableDeclaration {
        columns: vec![id, title, made, room],
        key: vec![0],
        indexes: vec![index],
        foreign_keys: vec![reference],
        left_out: vec![LeftOut { kind: LeftOutKind::View, name: "free".into() }],
        ..TableDeclaration::default()
    }
}

pub(crate) fn content_seeds() -> Vec<Vec<u8>> {
    changes().iter().map(|change| change.encode().to_vec()).collect()
}

pub(crate) fn key_seeds() -> Vec<Vec<u8>> {
    let keys = [vec![Value::Integer(1)], vec![Value::Text("a".into()), Value::Real(0.5)]];
    keys.iter().map(|key| Value::encode_key(key)).collect()
}

pub(crate) fn sealed_seeds() -> Vec<Vec<u8>> {
    let key = SealKey::new(Zeroizing::new([7; 32]));
    let sealed = sealed_content(&key);
    let other = timestamp(2, 1);
    let with = |first: u8, content: &[u8]| [&[first], &other.to_bytes()[..], content].concat();
    vec![with(0, &sealed), with(1, b"a content"), with(0, b"")]
}

fn sealed_content(key: &SealKey) -> Bytes {
    key.seal(timestamp(1, 1), b"a content", [1; 8])
}

pub(crate) fn delivery_seeds() -> Vec<Vec<u8>> {
    let addresses = [0, 0, 0, 0, 0, 0, 0, 1, 1, b'a', 1, b'b'];
    // Both frames are from RFC 8878: a block as it is, and a run without the size of the content.
    let plain = b"\x05\x28\xB5\x2F\xFD\x20\x05\x29\0\0hello";
    let run = b"\xE8\x07\x28\xB5\x2F\xFD\0\x38\x43\x1F\0a";
    [&plain[..], run].map(|message| [&addresses[..], message].concat()).into()
}

pub(crate) fn timestamp_seeds() -> Vec<Vec<u8>> {
    let timestamp = timestamp(1, 1);
    vec![timestamp.to_bytes().to_vec(), timestamp.to_string().into_bytes()]
}

pub(crate) fn phrase_seeds() -> Vec<Vec<u8>> {
    let zero = format!("{}art", "abandon ".repeat(23));
    vec![zero.to_uppercase().replace(' ', "\n").into_bytes(), zero.into_bytes()]
}
