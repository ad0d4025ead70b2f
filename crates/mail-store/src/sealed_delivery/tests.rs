use engine::DatabaseKey;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::limits::{ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX};

fn key(number: u8) -> MailSecretKey {
    MailSecretKey::derive(&DatabaseKey::from_bytes([number; 32]))
}

fn vault(number: u8) -> VaultId {
    VaultId::from_bytes(&[number; 16])
}

fn delivery(message: &[u8]) -> MailDelivery {
    MailDelivery {
        received_ms: 1_795_248_000_000,
        sender: "a@example.org".into(),
        recipient: "b@example.net".into(),
        message: message.to_vec(),
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty());
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.iter().map(|pair| byte(pair)).collect()
}

/// The file that `sealed_delivery.py` writes.
#[derive(Deserialize)]
struct DeliveryVectors {
    xwing_draft: DraftVector,
    deliveries: Vec<DeliveryVector>,
}

#[derive(Deserialize)]
struct DraftVector {
    seed: String,
    public_key: String,
}

#[derive(Deserialize)]
struct DeliveryVector {
    name: String,
    vault_key: String,
    vault: String,
    secret_key: String,
    public_key: String,
    sealed: String,
    delivery: PlainVector,
}

#[derive(Deserialize)]
struct PlainVector {
    received_ms: u64,
    sender: String,
    recipient: String,
    message: String,
}

fn vectors() -> DeliveryVectors {
    let vectors = include_str!("../../tests/vectors/sealed-delivery.json");
    serde_json::from_str(vectors).unwrap()
}

#[test]
fn deliveries_that_another_program_sealed_open() {
    for vector in vectors().deliveries {
        let vault_key = DatabaseKey::from_bytes(bytes_of(&vector.vault_key).try_into().unwrap());
        let key = MailSecretKey::derive(&vault_key);
        assert_eq!(key.0.to_bytes()[..], bytes_of(&vector.secret_key), "{}", vector.name);
        assert_eq!(key.public_key().to_bytes()[..], bytes_of(&vector.public_key));
        let opened = unseal(&bytes_of(&vector.sealed), &key, &vector.vault.parse().unwrap());
        let PlainVector { received_ms, sender, recipient, message } = vector.delivery;
        let message = bytes_of(&message);
        let expected = MailDelivery { received_ms, sender, recipient, message };
        assert!(opened.unwrap() == expected, "{}", vector.name);
    }
}

#[test]
fn the_key_pair_is_that_of_the_xwing_draft() {
    let DraftVector { seed, public_key } = vectors().xwing_draft;
    let key = MailSecretKey::from_seed(&bytes_of(&seed).try_into().unwrap());
    let public_key = bytes_of(&public_key);
    assert_eq!(key.public_key().to_bytes()[..], public_key);
    assert!(MailPublicKey::from_bytes(&public_key).unwrap() == key.public_key());
}

#[test]
fn bytes_that_are_no_public_key_are_refused() {
    let bytes = key(1).public_key().to_bytes();
    // A coefficient of ML-KEM's key is less than 3,329.
    let too_large = [&[0xFF; 3], &bytes[3..]].concat();
    for wrong in [&bytes[1..], &[bytes.as_slice(), &[0]].concat(), &too_large, &[]] {
        let error = MailPublicKey::from_bytes(wrong).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_changed_byte_is_refused() {
    let key = key(1);
    let sealed = seal(&delivery(b"Subject: a\r\n\r\n"), &key.public_key(), &vault(1)).unwrap();
    // X25519 ignores the highest bit of its part, the last of the encapsulated key.
    let ignored = (ENCAPSULATED_BYTES, 0x80);
    let places = (0..sealed.len()).map(|place| (place, 1 << (place % 8)));
    for (place, bit) in places.chain([ignored]) {
        let mut changed = sealed.clone();
        changed[place] ^= bit;
        let error = unseal(&changed, &key, &vault(1)).unwrap_err();
        match place {
            0 => assert!(matches!(error, Error::UnknownVersion { .. }), "{error}"),
            _ => assert!(matches!(error, Error::WrongKey), "byte {place}: {error}"),
        }
    }
}

#[test]
fn a_delivery_that_is_cut_off_or_longer_is_refused() {
    let sealed = seal(&delivery(b""), &key(1).public_key(), &vault(1)).unwrap();
    for length in 0..sealed.len() {
        assert!(unseal(&sealed[..length], &key(1), &vault(1)).is_err(), "{length} bytes");
    }
    let longer = [sealed.as_slice(), &[0]].concat();
    assert!(matches!(unseal(&longer, &key(1), &vault(1)), Err(Error::WrongKey)));
}

#[test]
fn another_key_and_another_vault_do_not_open_a_delivery() {
    let sealed = seal(&delivery(b"a"), &key(1).public_key(), &vault(1)).unwrap();
    assert!(unseal(&sealed, &key(1), &vault(1)).is_ok());
    assert!(matches!(unseal(&sealed, &key(2), &vault(1)), Err(Error::WrongKey)));
    assert!(matches!(unseal(&sealed, &key(1), &vault(2)), Err(Error::WrongKey)));
}

#[test]
fn two_seals_of_one_delivery_differ() {
    let seal = || seal(&delivery(b"a"), &key(1).public_key(), &vault(1)).unwrap();
    assert_ne!(seal()[1..HEADER_BYTES], seal()[1..HEADER_BYTES]);
}

#[test]
fn limits_are_those_of_the_format() {
    let seals = |delivery: &MailDelivery| {
        let sealed = seal(delivery, &key(1).public_key(), &vault(1))?;
        assert!(unseal(&sealed, &key(1), &vault(1))? == *delivery);
        Ok::<_, Error>(sealed.len())
    };
    let longest = MailDelivery {
        sender: "s".repeat(ADDRESS_BYTES_MAX),
        recipient: "r".repeat(ADDRESS_BYTES_MAX),
        ..delivery(&vec![7; MESSAGE_BYTES_MAX])
    };
    assert!(seals(&longest).unwrap() < 10_000, "it is compressed");
    let sender = "s".repeat(ADDRESS_BYTES_MAX + 1);
    for too_long in [
        MailDelivery { sender: sender.clone(), ..delivery(b"") },
        MailDelivery { recipient: sender, ..delivery(b"") },
        delivery(&vec![7; MESSAGE_BYTES_MAX + 1]),
    ] {
        assert!(matches!(
            seals(&too_long),
            Err(Error::AddressTooLong | Error::MessageTooLarge { .. })
        ));
    }
}

/// Returns a plaintext with these numbers and this frame.
fn plaintext(sender_length: &[u8], sender: &[u8], size: &[u8], frame: &[u8]) -> Vec<u8> {
    [&[0; 8], sender_length, sender, &[1, b'r'], size, frame].concat()
}

fn frame(message: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(message, 3).unwrap()
}

/// Returns a frame of RFC 8878 with a descriptor, the rest of its header, and one empty block.
fn empty_frame(descriptor: u8, header: &[u8]) -> Vec<u8> {
    [&[0x28, 0xB5, 0x2F, 0xFD, descriptor], header, &[1, 0, 0]].concat()
}

#[test]
fn a_plaintext_that_breaks_the_format_is_refused() {
    let hello = frame(b"hello");
    let skippable = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    let without_size = empty_frame(0, &[0x38]);
    let accepted = [
        plaintext(&[1], b"s", &[5], &hello),
        plaintext(&[0x80, 0x02], &[b's'; 256], &[5], &hello),
        plaintext(&[0], b"", &[0], &frame(b"")),
        plaintext(&[0], b"", &[0], &without_size),
    ];
    for plaintext in &accepted {
        let delivery = MailDelivery::decode(plaintext).unwrap();
        assert_eq!(delivery.recipient, "r");
        for length in 0..plaintext.len() {
            assert!(MailDelivery::decode(&plaintext[..length]).is_err());
        }
    }
    let terabyte = empty_frame(0xE0, &(1_u64 << 40).to_le_bytes());
    for (why, refused) in [
        ("a length in more bytes than it needs", plaintext(&[0x81, 0], b"s", &[5], &hello)),
        ("a size in more bytes than it needs", plaintext(&[1], b"s", &[0x85, 0x80, 0], &hello)),
        ("a number in five bytes", plaintext(&[0x81, 0x80, 0x80, 0x80, 0], b"s", &[5], &hello)),
        ("an address that is too long", plaintext(&[0x81, 0x02], &[b's'; 257], &[5], &hello)),
        ("an address that is not UTF-8", plaintext(&[1], b"\xFF", &[5], &hello)),
        // 50 MiB, 4 KiB and one byte.
        ("a size above the limit", plaintext(&[0], b"", &[0x81, 0xA0, 0x80, 0x19], &terabyte)),
        ("a frame of fewer bytes", plaintext(&[1], b"s", &[6], &hello)),
        ("a frame of more bytes", plaintext(&[1], b"s", &[4], &hello)),
        ("a frame of fewer bytes without a size", plaintext(&[0], b"", &[1], &without_size)),
        ("a frame that claims 1 TiB", plaintext(&[1], b"s", &[5], &terabyte)),
        ("no frame", plaintext(&[1], b"s", &[0], b"")),
        ("a byte after the frame", plaintext(&[1], b"s", &[5], &[&hello[..], &[0]].concat())),
        ("two frames", plaintext(&[1], b"s", &[5], &[hello.clone(), frame(b"")].concat())),
        ("a skippable frame", plaintext(&[1], b"s", &[0], &skippable)),
        ("one after the frame", plaintext(&[1], b"s", &[5], &[&hello[..], &skippable].concat())),
        ("a frame with a dictionary", plaintext(&[0], b"", &[0], &empty_frame(1, &[0x38, 9]))),
    ] {
        let error = MailDelivery::decode(&refused).expect_err(why);
        assert!(matches!(error, Error::Damaged { .. }), "{why}: {error}");
    }
}

#[test]
fn a_frame_without_a_size_stops_at_the_size_of_the_delivery() {
    // A run of 128 KiB in each of 1,000 blocks, in 4 bytes each.
    let run = |is_last: u8| [2 | is_last, 0, 0x10, b'a'];
    let mut bomb = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x38];
    bomb.extend((0..999).flat_map(|_| run(0)));
    bomb.extend(run(1));
    let decode = |size: &[u8]| MailDelivery::decode(&plaintext(&[0], b"", size, &bomb));
    assert!(matches!(decode(&[5]), Err(Error::Damaged { .. })));
}

#[test]
fn debug_output_hides_addresses_and_message() {
    let shown = format!("{:?}", delivery(b"secret"));
    assert_eq!(shown, "MailDelivery { received_ms: 1795248000000, message_bytes: 6, .. }");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_sealed_is_unsealed(
        received_ms: u64,
        sender in ".{0,64}",
        recipient in ".{0,64}",
        message in vec(any::<u8>(), 0..5_000),
    ) {
        let delivery = MailDelivery { received_ms, sender, recipient, message };
        let sealed = seal(&delivery, &key(1).public_key(), &vault(1)).unwrap();
        prop_assert!(unseal(&sealed, &key(1), &vault(1)).unwrap() == delivery);
    }

    #[test]
    fn no_bytes_cause_a_panic(mut bytes in vec(any::<u8>(), 0..3_000)) {
        prop_assert!(unseal(&bytes, &key(1), &vault(1)).is_err());
        if let Some(version) = bytes.first_mut() {
            *version = VERSION;
        }
        prop_assert!(unseal(&bytes, &key(1), &vault(1)).is_err());
    }

    #[test]
    fn no_change_of_a_plaintext_causes_a_panic(
        changes in vec((0..4_000_usize, any::<u8>()), 1..4),
        message in vec(0..4_u8, 0..4_000),
    ) {
        let mut plaintext = delivery(&message).encode(0, 0).unwrap();
        let length = plaintext.len();
        for (place, value) in changes {
            plaintext[place % length] = value;
        }
        if let Ok(changed) = MailDelivery::decode(&plaintext) {
            prop_assert!(changed.message.len() <= MESSAGE_BYTES_MAX);
        }
    }
}
