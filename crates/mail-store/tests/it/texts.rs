//! Tests of the text of a message, and of searching it.

use mail_store::{AttachmentSummary, search};

use super::*;

const ALTERNATIVE: &str = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nFrom: Ada <ada@example.org>\n\
    Content-Type: multipart/mixed; boundary=x\n\n--x\n\
    Content-Type: multipart/alternative; boundary=y\n\n--y\n\nPLAIN\n--y\n\
    Content-Type: text/html\n\n<p>rich <b>text</b></p>\n--y--\n--x\n\
    Content-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nnotes\n--x\n\
    Content-Type: application/pdf; name=\"b.pdf\"\n\
    Content-Transfer-Encoding: base64\n\nQUJD\n--x--\n";

fn stored(fixture: &VaultFixture, message: &str) -> StoredMessage {
    fixture.store(fixture.inbox(), &[message.as_bytes()]);
    fixture.messages(INBOX).pop().unwrap()
}

#[test]
fn the_plain_text_is_shown_or_else_that_of_the_html() {
    let fixture = VaultFixture::new();
    assert_eq!(stored(&fixture, ALTERNATIVE).text(), "PLAIN");
    assert_eq!(stored(&fixture, &ALTERNATIVE.replace("PLAIN", " ")).text().trim(), "rich text");
    assert_eq!(stored(&fixture, "").text(), "");
}

#[test]
fn attachments_are_the_parts_that_are_not_shown() {
    let fixture = VaultFixture::new();
    let message = stored(&fixture, ALTERNATIVE);
    assert!(message.entry.has_attachment);
    let summary = |file_name: &str, media_type: &str, bytes| AttachmentSummary {
        file_name: Some(file_name.to_owned()),
        media_type: media_type.to_owned(),
        bytes,
    };
    assert_eq!(
        message.attachments(),
        [summary("a.txt", "text/plain", 5), summary("b.pdf", "application/pdf", 4)]
    );
    assert!(!stored(&fixture, "A: b\n\ntext").entry.has_attachment);
}

#[test]
fn a_search_finds_words_of_fields_and_texts_in_any_case_newest_first() {
    let fixture = VaultFixture::new();
    let other = "To: bob@example.org\n\nplain and rich\n";
    fixture.store(fixture.inbox(), &[ALTERNATIVE.as_bytes(), other.as_bytes()]);
    let found = |text: &str| {
        let mut uids = Vec::new();
        let list = |entry: mail_store::MailboxEntry| {
            uids.push(entry.uid);
            true
        };
        search(&fixture.vault, fixture.inbox(), text, list).unwrap();
        uids
    };
    assert_eq!(found("plain"), [2, 1]);
    assert_eq!(found("RICH TEXT"), [1]);
    assert_eq!(found("grüsse"), []);
    assert_eq!(found("GRÜßE"), [1]);
    assert_eq!(found("Notes"), [1]);
    assert_eq!(found("bob@"), [2]);
    assert_eq!(found("QUJD"), []);
}
