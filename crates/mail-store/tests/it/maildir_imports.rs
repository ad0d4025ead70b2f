//! Tests of importing Maildirs that other programs wrote, are writing, or have damaged.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use mail_store::{ANSWERED, FLAGGED, FORWARDED, MailImportReport, SEEN, import_maildir};

use super::*;

/// A Maildir that a test writes.
struct MaildirFolder(PathBuf);

impl MaildirFolder {
    fn new(path: PathBuf) -> Self {
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(path.join(part)).unwrap();
        }
        Self(path)
    }

    /// Adds a mailbox, which is a folder.
    fn child(&self, name: &str) -> Self {
        Self::new(self.0.join(name))
    }

    /// Adds a message such as `cur/1:2,S`, which arrived at `seconds` after the first.
    fn add(&self, name: &str, seconds: u64, message: &str) {
        let path = self.0.join(name);
        fs::write(&path, message).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let received_s = RECEIVED_S.unsigned_abs() + seconds;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(received_s)).unwrap();
    }
}

fn import(fixture: &VaultFixture, folder: &MaildirFolder) -> MailImportReport {
    import_maildir(&fixture.vault, &folder.0, &mut |_| ()).unwrap()
}

/// Returns the reasons for what was refused, by the names of files.
fn refused(report: &MailImportReport) -> Vec<(String, String)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut refused: Vec<_> =
        report.refused.iter().map(|found| (name(&found.path), found.reason.clone())).collect();
    refused.sort();
    refused
}

#[test]
fn messages_are_stored_in_the_order_of_their_arrival_with_their_flags() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    maildir.add("cur/b:2,FRS", 2, "two");
    maildir.add("new/c", 1, "one");
    maildir.add("cur/a:2,", 3, "three");
    maildir.add("cur/d;2,P", 4, "four");
    maildir.add("cur/.hidden", 0, "no message");
    assert_eq!(import(&fixture, &maildir).stored_count, 4);
    assert_eq!(fixture.texts(INBOX), ["one", "two", "three", "four"]);
    let messages = fixture.messages(INBOX);
    let flags: Vec<Vec<&str>> =
        messages.iter().map(|message| message.entry.flags.names().collect()).collect();
    assert_eq!(flags, [vec![], vec![ANSWERED, FLAGGED, SEEN], vec![], vec![FORWARDED]]);
    assert_eq!(messages[2].entry.received.unix_s, RECEIVED_S + 3);
    assert_eq!(fixture.mailbox(INBOX).unseen_count, 3);
}

#[test]
fn flags_that_change_between_two_runs_import_nothing_twice() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    maildir.add("new/1", 1, "one");
    maildir.add("cur/2:2,", 2, "two");
    import(&fixture, &maildir);
    fs::rename(maildir.0.join("new/1"), maildir.0.join("cur/1:2,S")).unwrap();
    fs::rename(maildir.0.join("cur/2:2,"), maildir.0.join("cur/2:2,FS")).unwrap();
    maildir.add("new/3", 3, "two");
    let report = import(&fixture, &maildir);
    assert_eq!((report.stored_count, report.known_count), (1, 2));
    assert_eq!(fixture.texts(INBOX), ["one", "two", "two"]);
}

#[test]
fn a_name_that_a_program_gives_again_is_another_message() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    maildir.add("cur/1", 1, "one");
    import(&fixture, &maildir);
    maildir.add("cur/1", 1, "another");
    assert_eq!(import(&fixture, &maildir).stored_count, 1);
    assert_eq!(fixture.texts(INBOX), ["one", "another"]);
}

#[test]
fn an_import_that_was_interrupted_stores_the_rest_when_it_runs_again() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    let expected: Vec<String> = (0..450).map(|number| format!("Subject: {number}\n\n")).collect();
    for (number, message) in (0..).zip(&expected) {
        maildir.add(&format!("cur/{number}"), number, message);
    }
    let mut interrupted = |report: &MailImportReport| {
        assert!(report.stored_count < 200, "the test interrupts the import");
    };
    let run = || import_maildir(&fixture.vault, &maildir.0, &mut interrupted);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(fixture.texts(INBOX), expected[..200]);
    let report = import(&fixture, &maildir);
    assert_eq!((report.stored_count, report.known_count), (250, 200));
    assert_eq!(fixture.texts(INBOX), expected);
}

#[test]
fn two_processes_that_import_at_once_store_each_message_once() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    let expected: Vec<String> =
        (0..500).map(|number| format!("Subject: {number:03}\n\n")).collect();
    for (number, message) in (0..).zip(&expected) {
        maildir.add(&format!("cur/{number}"), number, message);
    }
    let (_databases, other) = fixture.open_again();
    let start = Barrier::new(2);
    let stored_counts = std::thread::scope(|scope| {
        let run = |vault| {
            start.wait();
            import_maildir(vault, &maildir.0, &mut |_| ()).unwrap().stored_count
        };
        let threads = [&fixture.vault, &other].map(|vault| scope.spawn(move || run(vault)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(stored_counts.iter().sum::<u64>(), 500);
    let mut texts = fixture.texts(INBOX);
    texts.sort();
    assert_eq!(texts, expected);
}

#[test]
fn folders_of_both_kinds_are_mailboxes() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    for (name, text) in [
        (".A.B", "flat"),
        ("A/B", "nested"),
        (".Entw&APw-rfe", "encoded"),
        ("Größe", "plain"),
        (".INBOX", "inbox"),
        (".a&AC4-b", "dot"),
        (".50% *new*", "wildcards"),
        (".a..b", "empty level"),
        (".x&AC8-y", "slash"),
    ] {
        maildir.child(name).add("cur/1", 1, text);
    }
    let report = import(&fixture, &maildir);
    assert_eq!((report.stored_count, refused(&report)), (9, vec![]));
    for (path, texts) in [
        ("A/B", vec!["flat", "nested"]),
        ("Entwürfe", vec!["encoded"]),
        ("Größe", vec!["plain"]),
        (INBOX, vec!["inbox"]),
        ("a.b", vec!["dot"]),
        ("50_ _new_", vec!["wildcards"]),
        ("a/_/b", vec!["empty level"]),
        ("x_y", vec!["slash"]),
    ] {
        assert_eq!(fixture.texts(path), texts, "{path}");
    }
}

#[test]
fn folders_whose_names_are_too_long_are_reported() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    maildir.add("cur/1", 1, "one");
    let deep = format!(".{}", ["x"; 21].join("."));
    // Each character has two UTF-16 units here, and three bytes in UTF-8.
    let long = format!(".&{}-", "eeV55Xnl".repeat(30));
    maildir.child(&deep).add("cur/1", 1, "two");
    maildir.child(&long).add("cur/1", 1, "three");
    let report = import(&fixture, &maildir);
    assert_eq!(report.stored_count, 1);
    let names: Vec<String> = refused(&report).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [long, deep]);
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn links_and_special_files_neither_loop_nor_block_and_the_rest_is_imported() {
        let fixture = VaultFixture::new();
        let maildir = MaildirFolder::new(fixture.path("m"));
        let outside = MaildirFolder::new(fixture.path("outside"));
        outside.add("cur/1", 1, "outside");
        maildir.add("cur/1", 1, "one");
        symlink(&maildir.0, maildir.0.join(".loop")).unwrap();
        symlink(&outside.0, maildir.0.join(".outside")).unwrap();
        symlink(maildir.0.join("cur/missing"), maildir.0.join("cur/dangling")).unwrap();
        symlink(maildir.0.join("cur/itself"), maildir.0.join("cur/itself")).unwrap();
        symlink(outside.0.join("cur/1"), maildir.0.join("cur/linked")).unwrap();
        symlink("/dev/zero", maildir.0.join("cur/endless")).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(maildir.0.join("cur/fifo")).status();
        assert!(fifo.unwrap().success());
        let _socket = UnixListener::bind(maildir.0.join("new/socket")).unwrap();
        fs::create_dir(maildir.0.join("new/folder")).unwrap();

        let report = import(&fixture, &maildir);
        assert_eq!(fixture.texts(INBOX), ["one", "outside"]);
        let refused = refused(&report);
        let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [".loop", ".outside", "itself"]);
        assert_eq!(refused[1].1, "it is a symbolic link");
    }

    #[test]
    fn names_that_are_not_utf_8_are_imported_once() {
        let fixture = VaultFixture::new();
        let maildir = MaildirFolder::new(fixture.path("m"));
        let folder = MaildirFolder::new(maildir.0.join(OsStr::from_bytes(b".caf\xe9")));
        for name in [&b"\xff:2,S"[..], b"\xfe:2,"] {
            fs::write(folder.0.join("cur").join(OsStr::from_bytes(name)), "text").unwrap();
        }
        assert_eq!(import(&fixture, &maildir).stored_count, 2);
        assert_eq!(import(&fixture, &maildir).known_count, 2);
        assert_eq!(fixture.mailbox("caf\u{fffd}").unseen_count, 1);
    }

    #[test]
    fn a_message_from_before_1970_keeps_its_time() {
        let fixture = VaultFixture::new();
        let maildir = MaildirFolder::new(fixture.path("m"));
        maildir.add("cur/1", 1, "old");
        let file = fs::File::options().write(true).open(maildir.0.join("cur/1")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH - Duration::from_secs(1_000)).unwrap();
        import(&fixture, &maildir);
        assert_eq!(fixture.messages(INBOX)[0].entry.received.unix_s, -1_000);
    }
}

#[test]
fn a_folder_without_mail_is_not_a_maildir() {
    let fixture = VaultFixture::new();
    fs::create_dir_all(fixture.path("empty/folder")).unwrap();
    let error = import_maildir(&fixture.vault, &fixture.path("empty"), &mut |_| ()).unwrap_err();
    assert!(matches!(error, mail_store::Error::NotAMaildir { .. }), "{error}");
}

#[test]
fn a_message_that_is_too_large_is_reported_and_the_rest_is_imported() {
    let fixture = VaultFixture::new();
    let maildir = MaildirFolder::new(fixture.path("m"));
    maildir.add("cur/1", 1, "one");
    maildir.add("cur/2", 2, "");
    maildir.add("cur/3", 3, "three");
    let file = fs::File::options().write(true).open(maildir.0.join("cur/2")).unwrap();
    file.set_len(mail_store::MESSAGE_BYTES_MAX as u64 + 1).unwrap();
    let report = import(&fixture, &maildir);
    assert_eq!(refused(&report)[0].0, "2");
    assert_eq!(fixture.texts(INBOX), ["one", "three"]);
}
