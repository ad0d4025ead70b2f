//! Tests `warren mail`: mail of other programs is imported, read and exported, byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, SystemTime};

use engine::Cipher;
use serde_json::{Value, json};

use crate::fixture::{PASSWORD, SyncFixture, files_below};
use crate::processes::{CommandOutput, start, warren};
use crate::python::apsw;
use crate::random::SplitMixRng;

/// Returns a message as an mbox contains it, with lines that are quoted there. Those with a 6 at
/// the end of their number have an attachment.
pub(crate) fn mbox_message(number: u64) -> String {
    let second = number % 60;
    let attachment = if number % 10 == 6 {
        let secret = format!("secret{:026}", number % 7).repeat(520);
        format!(
            "--next\n\
             Content-Type: image/png\nContent-Disposition: attachment; filename=\"x.png\"\n\n\
             {secret}\n"
        )
    } else {
        String::new()
    };
    format!(
        "From MAILER-DAEMON Sun Nov 29 04:00:{second:02} 2026\n\
         From: =?utf-8?q?Bob_L=C3=B6w?= <bob@example.com>\nTo: ada@example.org\n\
         Date: Sun, 29 Nov 2026 05:00:{second:02} +0100\nSubject: A secret {number}\nStatus: RO\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=next\n\n--next\n\n\
         The secret {number} is here.\n>From now on you know it.\n>>From the start.\n\
         {attachment}--next--\n\n"
    )
}

/// How often an import is killed; it may end earlier.
const KILLS_COUNT: u32 = 8;

/// Ada's account with mail.
pub(crate) struct MailFixture(pub(crate) SyncFixture);

impl MailFixture {
    /// Runs `warren mail …` with ada's password.
    #[track_caller]
    pub(crate) fn run(&self, command: &[&str]) -> Value {
        self.0.operator(&with_login(command))
    }

    #[track_caller]
    fn refused(&self, command: &[&str], code: &str) {
        let arguments = [self.arguments(command), vec!["--json"]].concat();
        warren(&arguments).refused(code);
    }

    fn output(&self, command: &[&str]) -> CommandOutput {
        warren(&self.arguments(command))
    }

    pub(crate) fn start(&self, command: &[&str]) -> Child {
        start(&self.arguments(command))
    }

    fn arguments<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let options = ["--data", &self.0.data, "--password-file", &self.0.password];
        [with_login(command), options.to_vec()].concat()
    }

    /// Writes an mbox with this number of messages, and returns its path.
    pub(crate) fn mbox(&self, name: &str, count: u64) -> String {
        let path = self.0.at(name);
        fs::write(&path, (0..count).map(mbox_message).collect::<String>()).unwrap();
        path
    }

    #[track_caller]
    pub(crate) fn mailbox(&self, path: &str) -> Value {
        let mailboxes = self.run(&["mailboxes"]);
        let is_it = |mailbox: &&Value| mailbox["mailbox"] == path;
        mailboxes.as_array().unwrap().iter().find(is_it).unwrap().clone()
    }
}

fn with_login<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [&["mail"], command, &["--login", "ada"]].concat()
}

#[test]
fn mail_of_another_program_is_read_and_comes_out_as_it_went_in() {
    let mail = MailFixture(SyncFixture::new());
    mail.refused(&["list"], "mail_not_set_up");
    let mbox = mail.mbox("a.mbox", 120);
    let report = mail.run(&["import", "mbox", &mbox]);
    let bytes = fs::metadata(&mbox).unwrap().len();
    assert_eq!((&report["stored_count"], &report["refused"]), (&json!(120), &json!([])));
    assert!(report["messages_bytes"].as_u64().unwrap() < bytes, "{report}");

    let listed = mail.run(&["list", "--limit", "2"]);
    let (newest, next) = (&listed[0], &listed[1]);
    assert_eq!((&newest["uid"], &next["uid"]), (&json!(120), &json!(119)));
    assert_eq!(newest["subject"], "A secret 119");
    assert_eq!(newest["from"], "Bob Löw <bob@example.com>");
    assert_eq!(newest["flags"], json!(["\\Seen"]));
    assert_eq!(newest["received_ms"], 1_795_924_859_000_u64);
    assert_eq!(newest["sent_ms"], newest["received_ms"]);
    assert_eq!(mail.run(&["list", "--before", "2"])[0]["uid"], 1);

    let shown = mail.run(&["show", "7"]);
    let text = "The secret 6 is here.\nFrom now on you know it.\n>From the start.";
    assert_eq!(shown["text"], text);
    assert_eq!(shown["attachments"][0]["file_name"], "x.png");
    assert_eq!(mail.run(&["search", "SECRET 6 IS"])[0]["uid"], 7);
    assert_eq!(mail.run(&["search", "löw"]).as_array().unwrap().len(), 50);
    assert_eq!(mail.run(&["search", "secret 6 is", "--mailbox", "Sent"]), json!([]));
    let raw = mail.output(&["show", "7", "--raw"]).succeeded().stdout;
    let written = mbox_message(6).replace("\n>From", "\nFrom").replace("\n>>From", "\n>From");
    assert_eq!(raw, written.split_once('\n').unwrap().1.trim_end_matches('\n').to_owned() + "\n");

    let exported = mail.0.at("b.mbox");
    assert_eq!(mail.run(&["export", "mbox", &exported])["messages_count"], 120);
    assert!(fs::read(&exported).unwrap() == fs::read(&mbox).unwrap());
    mail.refused(&["export", "mbox", &exported], "file_exists");
    mail.refused(&["show", "121"], "message_not_found");
    mail.refused(&["list", "--mailbox", "Nowhere"], "mailbox_not_found");
    mail.refused(&["import", "mbox", &mbox, "--mailbox", "a//b"], "invalid_mailbox_name");
    mail.refused(&["import", "maildir", &mail.0.at("")], "invalid_file");
    mail.refused(&["import", "mbox", &mail.0.password], "invalid_file");
    mail.refused(&["import", "mbox", &mail.0.at("nothing.mbox")], "file_not_found");
}

#[test]
fn a_maildir_keeps_its_mailboxes_flags_and_dates() {
    let mail = MailFixture(SyncFixture::new());
    let maildir = mail.0.at("maildir");
    let put = |path: &str, message: &str, day: u64| {
        let path = Path::new(&maildir).join(path);
        let folder = path.parent().unwrap();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.with_file_name(part)).unwrap();
        }
        fs::write(&path, message).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * day);
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    };
    put("cur/2.host:2,FRS", "Subject: second\r\n\r\ntext\r\n", 20_002);
    put("new/1.host", "Subject: first\n\nno end", 20_001);
    put(".Sent/cur/3.host:2,PST", "", 20_003);
    put(".Entw&APw-rfe.v1&AC4-2/cur/4.host:2,D", "\0\u{7f}: bytes", 20_004);
    assert_eq!(mail.run(&["import", "maildir", &maildir])["stored_count"], 4);
    // A later run stores only what is new, also if flags have changed.
    put("cur/5.host:2,", "Subject: fifth\n\n", 20_005);
    let old = Path::new(&maildir).join("new/1.host");
    fs::rename(&old, Path::new(&maildir).join("cur/1.host:2,S")).unwrap();
    let again = mail.run(&["import", "maildir", &maildir]);
    assert_eq!((&again["stored_count"], &again["known_count"]), (&json!(1), &json!(4)));

    let inbox = mail.run(&["list"]);
    let subjects: Vec<_> = inbox.as_array().unwrap().iter().map(|item| &item["subject"]).collect();
    assert_eq!(subjects, ["fifth", "second", "first"]);
    assert_eq!(inbox[1]["flags"], json!(["\\Answered", "\\Flagged", "\\Seen"]));
    assert_eq!(inbox[1]["received_ms"], 20_002 * 86_400_000_u64);
    assert_eq!(mail.mailbox("Entwürfe/v1.2")["messages_count"], 1);

    let exported = mail.0.at("exported");
    assert_eq!(mail.run(&["export", "maildir", &exported])["messages_count"], 5);
    let files = |folder: &str| -> BTreeSet<(String, String, SystemTime, Vec<u8>)> {
        let folder = Path::new(folder);
        let file = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let flags = name.split_once(":2,").map_or("", |(_, flags)| flags);
            let mailbox = path.parent().unwrap().parent().unwrap().strip_prefix(folder).unwrap();
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            let (mailbox, flags) = (mailbox.to_str().unwrap().to_owned(), flags.to_owned());
            (mailbox, flags, modified, fs::read(path).unwrap())
        };
        files_below(folder).iter().map(file).collect()
    };
    let mut before = files(&maildir);
    // Its new flag came after it was imported.
    let first = before.iter().find(|file| file.3.ends_with(b"no end")).unwrap().clone();
    before.remove(&first);
    before.insert((first.0, String::new(), first.2, first.3));
    assert_eq!(files(&exported), before);
}

#[test]
fn an_import_that_is_killed_continues_without_loss_or_repetition() {
    let mail = MailFixture(SyncFixture::new());
    let mbox = mail.mbox("a.mbox", 10_000);
    let vault = mail.0.unlock(PASSWORD).mail_vault().vault.path(Path::new(&mail.0.data));
    let wal = vault.with_extension("sqlite-wal");
    let written = || {
        let bytes = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        (bytes(&vault), bytes(&wal))
    };
    let mut rng = SplitMixRng::new();
    let mut kills_count = 0;
    for _ in 0..KILLS_COUNT {
        let mut import = mail.start(&["import", "mbox", &mbox, "--json"]);
        let before = written();
        while written() == before && import.try_wait().unwrap().is_none() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        std::thread::park_timeout(Duration::from_millis(rng.next() % 100));
        import.kill().unwrap();
        kills_count += u32::from(import.wait().unwrap().code().is_none());
    }
    assert!(kills_count > 0, "every import had ended");
    mail.run(&["import", "mbox", &mbox]);
    let report = mail.run(&["import", "mbox", &mbox]);
    assert_eq!((&report["stored_count"], &report["known_count"]), (&json!(0), &json!(10_000)));
    let inbox = mail.mailbox("INBOX");
    assert_eq!((&inbox["messages_count"], &inbox["uid_next"]), (&json!(10_000), &json!(10_001)));
    let exported = mail.0.at("b.mbox");
    mail.run(&["export", "mbox", &exported]);
    assert!(fs::read(&exported).unwrap() == fs::read(&mbox).unwrap());
}

#[test]
fn the_disk_shows_no_word_of_the_mail_and_its_owner_can_open_the_file_elsewhere() {
    let mail = MailFixture(SyncFixture::new());
    mail.run(&["import", "mbox", &mail.mbox("a.mbox", 50)]);
    for file in files_below(Path::new(&mail.0.data)) {
        let bytes = fs::read(&file).unwrap();
        for word in [&b"secret"[..], b"bob@example", b"x.png", b"INBOX", b"CREATE TABLE entry"] {
            let is_found = bytes.windows(word.len()).any(|window| window == word);
            assert!(!is_found, "{} has {}", file.display(), String::from_utf8_lossy(word));
        }
    }
    let vault = mail.0.unlock(PASSWORD).mail_vault();
    let path = vault.vault.path(Path::new(&mail.0.data));
    let read = apsw("read", &path, Cipher::ChaCha20, &vault.key).succeeded().value();
    assert_eq!(read["entry"], 50, "{read}");

    warren(&["account", "remove", "ada", "--yes", "--data", &mail.0.data]).succeeded();
    assert!(!path.exists());
}

#[test]
fn a_restored_mailbox_has_another_uid_validity() {
    let mail = MailFixture(SyncFixture::new());
    mail.run(&["import", "mbox", &mail.mbox("a.mbox", 3)]);
    let backup = mail.0.at("backup");
    warren(&["backup", &backup, "--data", &mail.0.data]).succeeded();
    mail.run(&["import", "mbox", &mail.mbox("later.mbox", 2)]);
    let (before, other_before) = (mail.mailbox("INBOX"), mail.mailbox("Sent"));
    assert_eq!(before["uid_next"], 6);

    fs::remove_dir_all(&mail.0.data).unwrap();
    warren(&["restore", &backup, "--data", &mail.0.data]).succeeded();
    let (after, other_after) = (mail.mailbox("INBOX"), mail.mailbox("Sent"));
    assert_eq!((&after["messages_count"], &after["uid_next"]), (&json!(3), &json!(4)));
    let number = |mailbox: &Value| mailbox["uid_validity"].as_u64().unwrap();
    assert!(number(&after) > number(&before) && number(&other_after) > number(&other_before));
    // It is given once.
    assert_eq!(mail.mailbox("INBOX"), after);
}

#[test]
fn an_address_belongs_to_one_account() {
    let mail = MailFixture(SyncFixture::new());
    let data = ["--data", &mail.0.data, "--json"];
    let eves = mail.0.add_account("eve");
    let added = mail.run(&["address", "add", "Ada@Example.ORG"]);
    assert_eq!(added, json!({"address": "ada@example.org", "login": "ada"}));
    // Only the first one needs the password.
    let as_ada = ["mail", "address", "add", "info@example.org", "--login", "ada"];
    warren(&[&as_ada[..], &data].concat()).succeeded();
    let as_eve = ["mail", "address", "add", "ada@example.org", "--login", "eve"];
    let password = ["--password-file", &eves];
    warren(&[&as_eve[..], &data, &password].concat()).refused("mail_address_taken");
    mail.refused(&["address", "add", "ada"], "invalid_mail_address");
    let remove = ["mail", "address", "remove", "info@example.org"];
    warren(&[&remove[..], &data].concat()).succeeded();
    warren(&[&remove[..], &data].concat()).refused("mail_address_not_found");
    let listed = warren(&[&["mail", "address", "list"], &data[..]].concat()).value();
    assert_eq!(listed, json!([added]));
}
