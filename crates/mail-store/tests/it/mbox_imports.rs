//! Tests of importing mbox files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mail_store::{DELETED, Error, MailImportReport, SEEN, import_mbox};

use super::*;

const FROM: &str = "From ada@example.org Sun Nov 29 04:00:00 2026\n";

fn import(fixture: &VaultFixture, mbox: &str) -> MailImportReport {
    let path = fixture.path("mbox");
    fs::write(&path, mbox).unwrap();
    import_mbox(&fixture.vault, &path, "In", &mut |_| ()).unwrap()
}

/// Imports an mbox into a new vault, and checks its messages.
fn check(mbox: &str, messages: &[&str]) {
    let fixture = VaultFixture::new();
    assert_eq!(import(&fixture, mbox).stored_count, messages.len() as u64);
    assert_eq!(fixture.texts("In"), messages, "{mbox:?}");
}

#[test]
fn messages_begin_after_from_lines_and_end_before_the_empty_line() {
    check("", &[]);
    check(FROM, &[""]);
    check(&format!("{FROM}\n"), &[""]);
    check(&format!("{FROM}\n{FROM}\n"), &["", ""]);
    check(&format!("{FROM}A: b\n\ntext\n\n"), &["A: b\n\ntext\n"]);
    check(&format!("{FROM}A: b\n\ntext"), &["A: b\n\ntext"]);
    check(&format!("{FROM}A: b\n\n{FROM}C: d\n"), &["A: b\n", "C: d\n"]);
    check(&format!("{FROM}A: b\n\n\n\n{FROM}C: d\n"), &["A: b\n\n\n", "C: d\n"]);
    let crlf = format!("{FROM}A: b\n\ntext\n\n{FROM}C: d\n\n").replace('\n', "\r\n");
    check(&crlf, &["A: b\r\n\r\ntext\r\n", "C: d\r\n"]);
}

#[test]
fn quoted_lines_lose_one_quote() {
    check(
        &format!("{FROM}>From a\n>>From b\n> From c\n>Fromage\n >From d\n>\n\n"),
        &["From a\n>From b\n> From c\n>Fromage\n >From d\n>\n"],
    );
}

#[test]
fn a_line_of_a_text_that_was_not_quoted_does_not_begin_a_message() {
    check(&format!("{FROM}A: b\n\ntext\nFrom here on\n\n"), &["A: b\n\ntext\nFrom here on\n"]);
    check(
        &format!("{FROM}A: b\n\n{}From \n", "x".repeat(1 << 20)),
        &[&format!("A: b\n\n{}From \n", "x".repeat(1 << 20))],
    );
    // Without an empty line, a time is needed; without a time, an empty line.
    check(&format!("{FROM}A: b\n{FROM}C: d\n\nFrom -\nE: f\n"), &["A: b\n", "C: d\n", "E: f\n"]);
}

#[test]
fn the_time_of_arrival_is_in_the_from_line_or_in_the_date() {
    let date = "Date: Sat, 28 Nov 2026 05:00:00 +0100\n";
    for (from_line, received_s) in [
        ("From ada@example.org Sun Nov 29 04:00:00 2026", RECEIVED_S),
        ("From - Sun Nov  1 04:00:00 2026", RECEIVED_S - 28 * 86_400),
        ("From 1850@xxx Sun Nov 29 05:00:00 +0100 2026", RECEIVED_S),
        ("From a: b c Sun Nov 29 00:30:00 2026 -0330", RECEIVED_S),
        ("From a Sun Nov 29 04:00:00 GMT 2026", RECEIVED_S),
        ("From a Sun Nov 31 04:00:00 2026", RECEIVED_S - 86_400),
        ("From a +99999 Nov 29 99:00:00 2026", RECEIVED_S - 86_400),
        ("From :", RECEIVED_S - 86_400),
        ("From ", RECEIVED_S - 86_400),
    ] {
        let fixture = VaultFixture::new();
        import(&fixture, &format!("{from_line}\n{date}\n"));
        assert_eq!(fixture.messages("In")[0].entry.received.unix_s, received_s, "{from_line}");
    }
}

#[test]
fn equal_messages_are_all_kept_and_nothing_is_imported_twice() {
    let fixture = VaultFixture::new();
    let message = format!("{FROM}A: b\n\ntext\n\n");
    let report = import(&fixture, &message.repeat(3));
    assert_eq!((report.stored_count, report.known_count), (3, 0));
    let report = import(&fixture, &message.repeat(4));
    assert_eq!((report.stored_count, report.known_count), (1, 3));
    // The mailbox is the same in any case and form of its name.
    let path = fixture.path("mbox");
    let import_again = |mailbox| import_mbox(&fixture.vault, &path, mailbox, &mut |_| ());
    assert_eq!(import_again("inbox").unwrap().stored_count, 4);
    assert_eq!(import_again(INBOX).unwrap().stored_count, 0);
}

#[test]
fn flags_that_change_between_two_runs_import_nothing_twice() {
    let fixture = VaultFixture::new();
    let message = |status: &str| format!("{FROM}A: b\n{status}\nStatus: x\n\n");
    import(&fixture, &message("Status: O\nX-Status: D\n"));
    let flags = &fixture.messages("In")[0].entry.flags;
    assert!(flags.has(DELETED) && !flags.has(SEEN));
    assert_eq!(import(&fixture, &message("Status: RO\nx-status: AF\n")).stored_count, 0);
    let other = message("Status: RO\n").replace("Status: x", "Status: y");
    assert_eq!(import(&fixture, &other).stored_count, 1, "this is text, not a field");
}

#[test]
fn an_import_that_was_interrupted_stores_the_rest_when_it_runs_again() {
    let fixture = VaultFixture::new();
    let expected: Vec<String> =
        (0..450).map(|number| format!("Subject: {}\n", number / 2)).collect();
    let mbox: Vec<String> = expected.iter().map(|message| format!("{FROM}{message}\n")).collect();
    let mbox = mbox.concat();
    let path = fixture.path("mbox");
    fs::write(&path, &mbox).unwrap();
    let mut interrupted = |report: &MailImportReport| {
        assert!(report.stored_count < 400, "the test interrupts the import");
    };
    let run = || import_mbox(&fixture.vault, &path, "In", &mut interrupted);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(fixture.mailbox("In").messages_count, 400);
    let report = import(&fixture, &mbox);
    assert_eq!((report.stored_count, report.known_count), (50, 400));
    assert_eq!(fixture.texts("In"), expected);
}

#[test]
fn a_message_of_the_maximum_size_is_imported_and_a_larger_one_is_reported() {
    let fixture = VaultFixture::new();
    let largest = "x".repeat(mail_store::MESSAGE_BYTES_MAX - 2);
    // The second message of the second file was stored with the first.
    for (end, line_break, stored_count) in [("", "\n", 2), ("y", "\r\n", 0)] {
        let mbox = format!("{FROM}\n{largest}{end}\n{line_break}{FROM}C: d\n\n");
        let report = import(&fixture, &mbox);
        assert_eq!((report.stored_count, report.refused.len()), (stored_count, end.len()));
    }
    let messages = fixture.messages("In");
    assert_eq!(messages[0].bytes.len(), mail_store::MESSAGE_BYTES_MAX);
    assert_eq!(messages[1].bytes, b"C: d\n");
    assert_eq!(messages.len(), 2);
}

#[test]
fn another_file_is_not_an_mbox() {
    let fixture = VaultFixture::new();
    let path = fixture.path("mbox");
    for text in ["Subject: a\n", "\n", "from a\n", ">From a\n"] {
        fs::write(&path, text).unwrap();
        let error = import_mbox(&fixture.vault, &path, "In", &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::NotAnMbox { .. }), "{text:?}: {error}");
    }
    assert!(fixture.vault.find_mailbox("In").is_err());
}
