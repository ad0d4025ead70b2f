//! Tests that a sealed content can be unsealed, and that each kind of change gives its own error.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::NodeId;

const VECTORS: &str = include_str!("../../../../vectors/seal.json");

fn key(byte: u8) -> SealKey {
    SealKey::new(Zeroizing::new([byte; 32]))
}

fn at(millis: u64) -> Timestamp {
    Timestamp::new(millis, 3, NodeId(7)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn any_content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(any::<u8>(), 0..2_000),
    ]
}

proptest! {
    #[test]
    fn what_was_sealed_opens(
        content in any_content(), tail in any::<[u8; 8]>(), millis in 0u64..1 << 47,
    ) {
        let sealed = key(1).seal(at(millis), &content, tail);
        prop_assert_eq!(sealing_key_id(&sealed), Some(key(1).id()));
        prop_assert_eq!(&key(1).open(at(millis), &sealed).unwrap()[..], &content[..]);
        prop_assert_eq!(key(2).open(at(millis), &sealed), Err(UnsealError::WrongKey));
        prop_assert_eq!(key(1).open(at(millis + 1), &sealed), Err(UnsealError::Replayed));
    }

    #[test]
    fn no_bytes_make_it_panic_or_open(
        bytes in prop::collection::vec(any::<u8>(), 0..200), sealed: bool,
    ) {
        let mut bytes = bytes;
        if sealed {
            bytes.splice(0..0, [&[VERSION][..], &key(1).id()].concat());
        }
        prop_assert!(key(1).open(at(1), &bytes).is_err());
    }

    #[test]
    fn padding_costs_little_and_is_undone(length in 0usize..1 << 24) {
        let padded = padded_length(length);
        prop_assert!(padded >= length.max(PADDED_BYTES_MIN));
        prop_assert_eq!(padded_length(padded), padded);
        if length > PADDED_BYTES_MIN {
            prop_assert!((padded - length) * 100 < length * 12, "{} for {}", padded, length);
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_told_apart() {
    let sealed = key(1).seal(at(5), b"the content", [9; 8]);
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let expected: &[UnsealError] = match bit / 8 {
            0 => &[UnsealError::NotSealed],
            1..9 => &[UnsealError::WrongKey],
            // A length that grew looks like a truncated content.
            33 => &[UnsealError::Tampered, UnsealError::Truncated],
            _ => &[UnsealError::Tampered],
        };
        let error = key(1).open(at(5), &flipped).unwrap_err();
        assert!(expected.contains(&error), "bit {bit}: {error}");
    }
}

#[test]
fn every_cut_is_noticed() {
    for length in [0, 11, 200, 20_000] {
        let sealed = key(1).seal(at(5), &vec![7; length], [9; 8]);
        assert_eq!(key(1).open(at(5), b""), Err(UnsealError::NotSealed));
        for end in 1..sealed.len() {
            let cut = key(1).open(at(5), &sealed[..end]);
            assert_eq!(cut, Err(UnsealError::Truncated), "{end} of {}", sealed.len());
        }
        let longer = [&sealed[..], &[0]].concat();
        assert_eq!(key(1).open(at(5), &longer), Err(UnsealError::Tampered));
    }
}

#[test]
fn another_messages_content_is_replayed_only_if_it_is_a_true_one() {
    let sealed = key(1).seal(at(5), b"the content", [9; 8]);
    assert_eq!(key(1).open(at(6), &sealed), Err(UnsealError::Replayed));
    // Replacing its timestamp by this message's does not help.
    let mut forged = sealed.to_vec();
    forged[9..25].copy_from_slice(&at(6).to_bytes());
    assert_eq!(key(1).open(at(6), &forged), Err(UnsealError::Tampered));
    assert_eq!(key(1).open(at(7), &forged), Err(UnsealError::Tampered));
}

#[test]
fn lengths_of_short_contents_do_not_show() {
    let length = |content: &[u8]| key(1).seal(at(5), content, [0; 8]).len();
    assert_eq!(length(b""), length(&[1; 31]));
    assert!(length(&[1; 31]) < length(&[1; 32]));
    assert_eq!(
        [33, 64, 65, 100, 1_000, 1_000_000].map(padded_length),
        [36, 64, 72, 104, 1_024, 1_015_808]
    );
}

#[test]
fn content_that_only_a_key_holder_could_have_padded_wrongly_is_refused() {
    let mut body = pad(b"the content");
    assert_eq!(unpad(&body).as_deref(), Some(&b"the content"[..]));
    assert_eq!(unpad(&body[..31]), None);
    body.push(0);
    assert_eq!(unpad(&body), None);
    body.pop();
    body[20] = 1;
    assert_eq!(unpad(&body), None);
}

#[test]
fn a_tail_is_that_of_key_timestamp_and_content() {
    let tail = key(1).nonce_tail(at(5), b"the content");
    assert_eq!(key(1).nonce_tail(at(5), b"the content"), tail);
    assert_ne!(key(2).nonce_tail(at(5), b"the content"), tail);
    assert_ne!(key(1).nonce_tail(at(6), b"the content"), tail);
    assert_ne!(key(1).nonce_tail(at(5), b"the contents"), tail);
}

#[test]
fn a_form_is_a_key_id_or_nothing() {
    for form in [EncryptionMode::Plain, EncryptionMode::EndToEnd([7; 8])] {
        assert_eq!(EncryptionMode::from_bytes(form.as_bytes()), Some(form));
    }
    assert_eq!(EncryptionMode::from_bytes(&[7; 9]), None);
}

#[test]
fn the_vectors_hold() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let vectors = vectors["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 5);
    for vector in vectors {
        let key = SealKey::new(Zeroizing::new(unhex(&vector["key"]).try_into().unwrap()));
        let timestamp: Timestamp = vector["timestamp"].as_str().unwrap().parse().unwrap();
        let (content, sealed) = (unhex(&vector["content"]), unhex(&vector["sealed"]));
        let tail = unhex(&vector["nonce_tail"]).try_into().unwrap();
        assert_eq!(hex(&key.id()), vector["key_id"].as_str().unwrap());
        assert_eq!(hex(&key.seal(timestamp, &content, tail)), hex(&sealed));
        assert_eq!(&key.open(timestamp, &sealed).unwrap()[..], &content[..]);
    }
}
