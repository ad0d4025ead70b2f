//! Tests that messages come back byte for byte.

use mail_store::{INBOX, export_maildir, export_mbox, import_maildir, import_mbox};

use super::*;

const SEED: u64 = 24;

fn check_read_back(fixture: &VaultFixture, messages: &[Vec<u8>]) {
    for batch in messages.chunks(500) {
        fixture.store(fixture.inbox(), &batch.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    let stored = fixture.messages(INBOX);
    assert_eq!(stored.len(), messages.len());
    for (number, (stored, message)) in stored.iter().zip(messages).enumerate() {
        assert_eq!(stored.bytes, *message, "message {number}, seed {SEED}");
        assert_eq!(stored.entry.uid as usize, number + 1);
        assert_eq!(stored.entry.size, message.len() as u64);
        assert!(message.starts_with(&stored.entry.header));
        // Text and attachments of any message can be shown.
        let _shown =
            (stored.text(), stored.attachments(), stored.entry.fields().subject().is_some());
    }
}

#[test]
fn messages_come_back_byte_for_byte() {
    let fixture = VaultFixture::new();
    let mut messages = corpus();
    messages.extend([&b""[..], b"\n", b"\r\n", b"a", b"\0", b"From a\n"].map(<[u8]>::to_vec));
    check_read_back(&fixture, &messages);
}

#[test]
fn changed_messages_come_back_byte_for_byte() {
    let fixture = VaultFixture::new();
    check_read_back(&fixture, &mutated_messages(SEED, 3_000));
}

#[test]
fn a_maildir_holds_bytes_flags_times_and_mailboxes() {
    let (from, to) = (VaultFixture::new(), VaultFixture::new());
    let all_flags = [
        mail_store::SEEN,
        mail_store::ANSWERED,
        mail_store::FLAGGED,
        mail_store::DELETED,
        mail_store::DRAFT,
        mail_store::FORWARDED,
    ];
    let paths =
        [INBOX, "INBOX/child", "Sent", "a.b/..", "Größe & 📬/日本語", ".hidden", "cur", "~"];
    let mut messages = corpus();
    messages.extend(mutated_messages(SEED + 1, 400));
    messages.push(Vec::new());
    for (number, received_s) in (0..messages.len()).zip((-1_000_000..).step_by(10_000)) {
        let mailbox = from.vault.find_or_create_mailbox(paths[number % paths.len()]).unwrap();
        let flags: Vec<&str> =
            (0..6).filter(|bit| number >> bit & 1 == 1).map(|bit| all_flags[bit]).collect();
        let new = from.new_message(&messages[number], &flags, received_s);
        from.vault.store(mailbox, vec![new]).unwrap();
    }
    let maildir = from.path("maildir");
    let exported = export_maildir(&from.vault, &maildir, &mut |_| ()).unwrap();
    assert_eq!(exported.messages_count, messages.len() as u64);
    let imported = import_maildir(&to.vault, &maildir, &mut |_| ()).unwrap();
    assert_eq!((imported.stored_count, imported.refused.len()), (messages.len() as u64, 0));
    let numbers = |fixture: &VaultFixture| {
        let mailboxes = fixture.vault.mailboxes().unwrap().into_iter();
        let mut numbers: Vec<_> =
            mailboxes.map(|found| (found.path, found.messages_count, found.unseen_count)).collect();
        numbers.sort();
        numbers
    };
    assert_eq!(numbers(&from), numbers(&to));
    for path in paths {
        let (before, after) = (from.messages(path), to.messages(path));
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.bytes, after.bytes, "{path}, seed {SEED}");
            assert_eq!(before.entry.flags, after.entry.flags);
            assert_eq!(before.entry.received, after.entry.received);
        }
    }
}

#[test]
fn an_mbox_that_was_imported_is_exported_with_equal_bytes() {
    let (from, to) = (VaultFixture::new(), VaultFixture::new());
    let mut messages = corpus();
    messages.extend(mutated_messages(SEED + 2, 400));
    messages.extend(
        [&b""[..], b"\n", b"\r\n", b"\n\n", b"From ", b">>From \r\n", b"a\r\n\r\n"]
            .map(<[u8]>::to_vec),
    );
    from.store(from.inbox(), &messages.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (first, second) = (from.path("first"), to.path("second"));
    export_mbox(&from.vault, INBOX, &first, &mut |_| ()).unwrap();
    import_mbox(&to.vault, &first, INBOX, &mut |_| ()).unwrap();
    export_mbox(&to.vault, INBOX, &second, &mut |_| ()).unwrap();
    for (number, (message, read)) in messages.iter().zip(to.messages(INBOX)).enumerate() {
        let end: &[u8] = if message.is_empty() || message.ends_with(b"\n") { b"" } else { b"\n" };
        assert_eq!(read.bytes, [message, end].concat(), "message {number}, seed {SEED}");
        assert_eq!(read.entry.received.unix_s, RECEIVED_S);
    }
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap(), "seed {SEED}");
}
