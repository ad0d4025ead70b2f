//! Tests that equal parts are stored once.

use mail_store::INBOX;

use super::*;

/// Returns a multipart with these bodies.
pub(crate) fn message_with(bodies: &[&[u8]]) -> Vec<u8> {
    let mut message = b"Content-Type: multipart/mixed; boundary=x\r\n\r\n".to_vec();
    for body in bodies {
        message.extend_from_slice(b"--x\r\nContent-Type: image/x\r\n\r\n");
        message.extend_from_slice(body);
        message.extend_from_slice(b"\r\n");
    }
    message.extend_from_slice(b"--x--\r\n");
    message
}

/// Returns bytes that do not compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = SeededNumbers(seed);
    (0..length).map(|_| LETTERS[random.below(LETTERS.len())]).collect()
}

#[test]
fn equal_parts_are_stored_once_and_others_are_not_confused() {
    let fixture = VaultFixture::new();
    let large = noise(1, 300_000);
    let mut other = large.clone();
    other[299_999] ^= 1;
    let messages = [
        message_with(&[&large]),
        message_with(&[b"small", &large]),
        message_with(&[&large, &other, &large]),
        message_with(&[&large[..16 << 10]]),
        message_with(&[&large[..(16 << 10) - 1]]),
    ];
    // The first three are stored in one transaction, the others later.
    for batch in [&messages[..3], &messages[3..]] {
        fixture.store(fixture.inbox(), &batch.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    let stored = fixture.messages(INBOX);
    for (stored, message) in stored.iter().zip(&messages) {
        assert!(stored.bytes == *message);
    }
    // `large` has three contents, `other` shares two of them, and one part is just large enough.
    assert_eq!(fixture.number("SELECT count(*) FROM content WHERE digest IS NOT NULL"), 5);
    assert_eq!(fixture.number("SELECT max(references_count) FROM content"), 5);
}

#[test]
fn the_digest_of_a_part_depends_on_the_vault() {
    let (one, two) = (VaultFixture::new(), VaultFixture::new());
    let message = message_with(&[&noise(1, 20_000)]);
    let digest = |fixture: &VaultFixture| -> Vec<u8> {
        fixture.store(fixture.inbox(), &[&message]);
        let sql = "SELECT digest FROM content WHERE digest IS NOT NULL";
        fixture.sql().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let unkeyed = blake3::hash(&noise(1, 20_000));
    let (one, two) = (digest(&one), digest(&two));
    assert!(one != two && one != unkeyed.as_bytes());
}

#[test]
fn a_message_of_the_maximum_size_is_stored_and_a_larger_one_is_not() {
    let fixture = VaultFixture::new();
    let mut message = b"Subject: large\n\n".to_vec();
    message.resize(mail_store::MESSAGE_BYTES_MAX, b'x');
    fixture.store(fixture.inbox(), &[&message]);
    assert!(fixture.messages(INBOX)[0].bytes == message);
    message.push(b'x');
    let refused = fixture.vault.prepare(&message).err().unwrap();
    assert!(matches!(refused, mail_store::Error::MessageTooLarge { .. }), "{refused}");
}
