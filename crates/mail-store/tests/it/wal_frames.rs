//! The number of pages that a commit writes.

use super::*;

/// Stores messages in one transaction, and returns the number of frames that it wrote to the WAL.
fn frames(fixture: &VaultFixture, messages: &[&[u8]]) -> u64 {
    const PAGE_BYTES: u64 = 4_096;
    const FRAME_HEADER_BYTES: u64 = 24;
    const WAL_HEADER_BYTES: u64 = 32;
    fixture.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    fixture.store(fixture.inbox(), messages);
    let mut wal = fixture.file().into_os_string();
    wal.push("-wal");
    (fs::metadata(wal).unwrap().len() - WAL_HEADER_BYTES) / (PAGE_BYTES + FRAME_HEADER_BYTES)
}

fn small_message(number: usize) -> Vec<u8> {
    format!(
        "From: Ada <ada@example.org>\r\nTo: bob@example.org\r\nSubject: message {number}\r\n\
         Message-ID: <{number}.x@example.org>\r\nDate: Sun, 29 Nov 2026 04:00:00 +0000\r\n\r\n\
         This is the text of message {number}.\r\n"
    )
    .into_bytes()
}

#[test]
fn a_small_message_writes_few_pages() {
    let fixture = VaultFixture::new();
    let messages: Vec<Vec<u8>> = (0..1_200).map(small_message).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    fixture.store(fixture.inbox(), &messages[..1_000]);
    let each: Vec<u64> =
        messages[1_000..1_100].iter().map(|message| frames(&fixture, &[message])).collect();
    let batch = frames(&fixture, &messages[1_100..]);
    let sum: u64 = each.iter().sum();
    assert!(sum <= 700, "{sum} frames for 100 messages");
    assert!(batch <= 30, "{batch} frames for a batch of 100");
}
