//! Tests the way of mail: from LMTP, sealed, through the spool, into the mailbox.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{SyncFixture, files_below};
use crate::lmtp_client::LmtpClient;
use crate::mail::MailFixture;
use crate::processes::{ServeProcess, as_root, python, sql, start, warren, with_input};
use crate::random::SplitMixRng;

/// Delivers messages with Python's smtplib: `smtplib_client.py HOST PORT COUNT`.
const SMTPLIB: &str = "
import smtplib, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with smtplib.LMTP(host, port) as client:
    for number in range(count):
        message = f'Subject: confidential {number}\\r\\n\\r\\n.confidential words {number}\\r\\n'
        client.sendmail('bob@example.com', ['ada@example.org'], message)
";

/// Prints which of some words are in the memory of a process: `memory.py PROCESS WORD…`.
const MEMORY: &str = "
import re, sys
words, found = [word.encode() for word in sys.argv[2:]], set()
with open(f'/proc/{sys.argv[1]}/maps') as maps, open(f'/proc/{sys.argv[1]}/mem', 'rb') as memory:
    for line in maps:
        first, end, rights = re.match('([0-9a-f]+)-([0-9a-f]+) (..)', line).groups()
        if rights == 'rw':
            memory.seek(int(first, 16))
            content = memory.read(int(end, 16) - int(first, 16))
            found.update(word for word in words if word in content)
print(b'\\n'.join(sorted(found)).decode())
";

const MESSAGES_COUNT: u64 = 1_000;

/// Words of those messages.
const SECRET_WORDS: [&str; 3] = ["confidential", "bob@example.com", "client.example"];

/// How often the server is killed while it receives mail. `WARREN_MAIL_KILLS` sets another number.
const KILLS_COUNT: u64 = 200;

/// Ada's account with the address `ada@example.org`, and a server that receives mail.
pub(crate) fn with_address() -> MailFixture {
    let mail = MailFixture(SyncFixture::new());
    mail.run(&["address", "add", "ada@example.org"]);
    mail
}

pub(crate) fn serve(mail: &MailFixture) -> ServeProcess {
    ServeProcess::start(&mail.0.data, &["--lmtp", "127.0.0.1:0"])
}

pub(crate) fn spool(mail: &MailFixture) -> Value {
    warren(&["mail", "spool", "list", "--json", "--data", &mail.0.data]).succeeded().value()
}

/// Returns the subjects of all messages in INBOX, the oldest first.
pub(crate) fn subjects(mail: &MailFixture) -> Vec<String> {
    let listed = mail.run(&["list", "--limit", "100000"]);
    let subject = |item: &Value| item["subject"].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().rev().map(subject).collect()
}

#[test]
fn mail_for_a_locked_mailbox_waits_sealed_and_is_filed_in_order() {
    let mail = with_address();
    let server = serve(&mail);
    let (host, port) = server.lmtp.as_deref().unwrap().split_once(':').unwrap();
    let mut client = Command::new(python());
    client.args(["-c", SMTPLIB, host, port, &MESSAGES_COUNT.to_string()]);
    with_input(&mut client, "").succeeded();
    let waiting = &spool(&mail)["waiting"][0];
    assert_eq!((&waiting["login"], &waiting["deliveries_count"]), (&json!("ada"), &json!(1_000)));

    server.kill();
    let server = serve(&mail);
    let mut files = files_below(Path::new(&mail.0.data));
    files.retain(|file| file.file_name().is_some_and(|name| name != "disk-reserve"));
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for word in SECRET_WORDS {
            let is_found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!is_found, "{} has {word}", file.display());
        }
    }
    let mut memory = as_root(&python());
    memory.args(["-c", MEMORY, &server.process().to_string()]).args(SECRET_WORDS);
    // The search finds what the server does know.
    let found = with_input(memory.arg(&mail.0.data), "").succeeded().stdout;
    assert_eq!(found.trim_end(), mail.0.data);

    let expected: Vec<String> = (0..MESSAGES_COUNT).map(|n| format!("confidential {n}")).collect();
    assert_eq!(subjects(&mail), expected);
    assert_eq!(spool(&mail), json!({"waiting": [], "set_aside": []}));
    let shown = mail.run(&["show", "8"]);
    assert_eq!(shown["text"], ".confidential words 7\r\n");
    let raw = mail.0.at("message");
    mail.run(&["export", "mbox", &raw]);
    let raw = fs::read_to_string(raw).unwrap();
    let first = raw.split("\nFrom ").next().unwrap();
    let header =
        "Return-Path: <bob@example.com>\r\nDelivered-To: ada@example.org\r\nReceived: from ";
    assert!(first.split_once('\n').unwrap().1.starts_with(header), "{first}");
    // Filing again finds nothing.
    assert_eq!(mail.mailbox("INBOX")["uid_next"], 1_001);
    server.stop();
}

/// Delivers messages until the server is killed. Returns the subjects of those that it accepted.
fn deliver_until_killed(mut connection: LmtpClient, name: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let subject = format!("{name} {number}");
        let message = format!("Subject: {subject}\r\n\r\ntext");
        match connection.deliver("ada@example.org", &message) {
            Ok(reply) if reply.starts_with("250") => acknowledged.push(subject),
            Ok(reply) => panic!("{reply}"),
            Err(_killed) => break,
        }
    }
    acknowledged
}

/// Delivers mail to servers that are killed at some moment, one after the other. Returns the
/// subjects of the messages that they accepted.
fn deliver_and_kill(mail: &MailFixture, kills: u64) -> BTreeSet<String> {
    let mut rng = SplitMixRng::new();
    let mut acknowledged = BTreeSet::new();
    for round in 0..kills {
        let server = serve(mail);
        let clients = [1, 2].map(|client| {
            let connection = LmtpClient::connect(&server).unwrap();
            let name = format!("{round} {client}");
            thread::spawn(move || deliver_until_killed(connection, &name))
        });
        thread::park_timeout(Duration::from_millis(50 + rng.next() % 200));
        server.kill();
        acknowledged.extend(clients.into_iter().flat_map(|client| client.join().unwrap()));
    }
    acknowledged
}

/// Files mail again and again until `is_done`, and kills each command at some moment. Later ones
/// have more time, so that some file mail on a busy machine, too. Returns how many were killed.
fn file_and_kill(command: &[&str], is_done: impl Fn() -> bool) -> u64 {
    let mut rng = SplitMixRng::new();
    let mut killed_count = 0;
    while !is_done() {
        let mut filing = start(command);
        let most_ms = 1_000 + 100 * killed_count;
        thread::park_timeout(Duration::from_millis(200 + rng.next() % most_ms));
        filing.kill().unwrap();
        killed_count += u64::from(filing.wait().unwrap().code().is_none());
    }
    killed_count
}

#[test]
fn what_was_acknowledged_before_a_kill_arrives_once() {
    let mail = with_address();
    let given = std::env::var_os("WARREN_MAIL_KILLS");
    let kills = given.map_or(KILLS_COUNT, |number| number.to_str().unwrap().parse().unwrap());
    // A mail password needs no slow hash, so the commands are killed while they file.
    let added = mail.run(&["password", "add"]);
    let password = mail.0.write("password", added["password"].as_str().unwrap());
    let filing = ["mail", "mailboxes", "--login", "ada", "--data", &mail.0.data];
    let filing = [&filing[..], &["--password-file", &password]].concat();
    let (acknowledged, killed_count) = thread::scope(|scope| {
        let delivering = scope.spawn(|| deliver_and_kill(&mail, kills));
        let killed_count = file_and_kill(&filing, || delivering.is_finished());
        (delivering.join().unwrap(), killed_count)
    });
    assert!(killed_count > 0, "no command was killed while it filed");
    let waiting = spool(&mail)["waiting"][0]["deliveries_count"].as_u64().unwrap_or(0);
    assert!(waiting < acknowledged.len() as u64, "{waiting} wait: the killed commands filed none");
    let found = subjects(&mail);
    let once: BTreeSet<String> = found.iter().cloned().collect();
    assert_eq!(once.len(), found.len(), "a message arrived twice");
    let lost: Vec<_> = acknowledged.difference(&once).collect();
    assert_eq!(lost, Vec::<&String>::new());
    let inbox = mail.mailbox("INBOX");
    assert_eq!(inbox["uid_next"], json!(found.len() + 1));
}

#[test]
fn each_recipient_gets_an_answer_and_only_known_ones_get_mail() {
    let mail = with_address();
    let server = serve(&mail);
    let mut client = LmtpClient::connect(&server).unwrap();
    let mut deliver = |to: &str| client.deliver(to, "Subject: a\r\n\r\nb").unwrap();
    assert!(deliver("eve@example.org").starts_with("550 5.1.1"));
    assert!(deliver("ada").starts_with("550 5.1.1"));
    assert!(deliver("Ada+lists@Example.org").starts_with("250"));
    // The address belongs to the account from the next command on.
    warren(&[
        "mail",
        "address",
        "add",
        "eve@example.org",
        "--login",
        "ada",
        "--data",
        &mail.0.data,
    ])
    .succeeded();
    client.command("MAIL FROM:<>").unwrap();
    for (to, code) in [("ada", "250"), ("nobody", "550"), ("eve", "250")] {
        let reply = client.command(&format!("RCPT TO:<{to}@example.org>")).unwrap();
        assert!(reply.starts_with(code), "{to}: {reply}");
    }
    client.command("DATA").unwrap();
    assert!(client.command("Subject: both\r\n\r\nc\r\n.").unwrap().starts_with("250"));
    assert!(client.reply().unwrap().starts_with("250"));
    assert!(client.command("QUIT").unwrap().starts_with("221"));
    assert_eq!(subjects(&mail), ["a", "both", "both"]);

    // A message for many is sealed and stored for a few at a time.
    let mut client = LmtpClient::connect(&server).unwrap();
    let mut rng = SplitMixRng::of(1);
    let line = |_| format!("{:016x}\r\n", rng.next());
    let noise = (0..60_000).map(line).collect::<Vec<_>>().concat();
    client.command("MAIL FROM:<>").unwrap();
    for number in 0..40 {
        client.command(&format!("RCPT TO:<ada+{number}@example.org>")).unwrap();
    }
    client.command("DATA").unwrap();
    client.send(format!("Subject: large\r\n\r\n{noise}.\r\n").as_bytes()).unwrap();
    for _ in 0..40 {
        assert!(client.reply().unwrap().starts_with("250"));
    }
    let found = subjects(&mail);
    assert_eq!((found.len(), &*found[42]), (43, "large"));

    // A message above the limit is refused, and the connection stays open.
    let mut client = LmtpClient::connect(&server).unwrap();
    let large = "MAIL FROM:<bob@example.com> SIZE=60000000";
    assert!(client.command(large).unwrap().starts_with("552 5.3.4"));
    assert!(client.deliver("ada@example.org", "Subject: d\r\n\r\ne").unwrap().starts_with("250"));
    server.stop();
    assert!(client.reply().unwrap().starts_with("421"));
}

#[test]
fn a_delivery_that_does_not_open_is_set_aside_and_the_others_are_filed() {
    let mail = with_address();
    let server = serve(&mail);
    let mut client = LmtpClient::connect(&server).unwrap();
    for subject in ["one", "two", "three"] {
        client.deliver("ada@example.org", &format!("Subject: {subject}\r\n\r\ntext")).unwrap();
    }
    server.stop();
    let file = Path::new(&mail.0.data).join("spool.sqlite");
    let second = "(SELECT seq FROM delivery ORDER BY seq LIMIT 1 OFFSET 1)";
    let damage = format!("UPDATE delivery SET sealed = zeroblob(size) WHERE seq = {second}");
    sql(file.to_str().unwrap(), &damage);

    assert_eq!(subjects(&mail), ["one", "three"]);
    let set_aside = spool(&mail)["set_aside"].clone();
    assert_eq!(
        (&set_aside[0]["login"], &set_aside[0]["reason"]),
        (&json!("ada"), &json!("format_too_new"))
    );
    let delivery = set_aside[0]["delivery_id"].to_string();
    let remove = ["mail", "spool", "remove", &delivery, "--json", "--data", &mail.0.data];
    warren(&remove).refused("confirmation_required");
    warren(&[&remove[..], &["--yes"]].concat()).succeeded();
    warren(&[&remove[..], &["--yes"]].concat()).refused("not_found");
}

#[test]
fn old_copies_of_the_spool_and_of_the_vault_lose_and_repeat_nothing_that_they_have() {
    let mail = with_address();
    let deliver = |subject: &str| {
        let server = serve(&mail);
        let mut client = LmtpClient::connect(&server).unwrap();
        let message = format!("Subject: {subject}\r\n\r\ntext");
        assert!(client.deliver("ada@example.org", &message).unwrap().starts_with("250"));
        server.stop();
    };
    let data = Path::new(&mail.0.data);
    let spool_file = data.join("spool.sqlite");
    let vault = mail.0.unlock(crate::fixture::PASSWORD).mail_vault().vault.path(data);
    deliver("first");
    let old_spool = fs::read(&spool_file).unwrap();
    assert_eq!(subjects(&mail), ["first"]);
    // The old spool still has the delivery, which is filed.
    fs::write(&spool_file, old_spool).unwrap();
    deliver("second");
    assert_eq!(subjects(&mail), ["first", "second"]);

    let (old_vault, before) = (fs::read(&vault).unwrap(), mail.mailbox("INBOX"));
    deliver("third");
    assert_eq!(subjects(&mail), ["first", "second", "third"]);
    // The third UID was given, so the old vault must not give it again in the same UIDVALIDITY.
    fs::write(&vault, old_vault).unwrap();
    deliver("fourth");
    assert_eq!(subjects(&mail), ["first", "second", "fourth"]);
    let after = mail.mailbox("INBOX");
    let number = |mailbox: &Value| mailbox["uid_validity"].as_u64().unwrap();
    assert!(number(&after) > number(&before), "{before} {after}");

    // A spool that was lost gives no number again.
    fs::remove_file(&spool_file).unwrap();
    deliver("fifth");
    assert_eq!(subjects(&mail), ["first", "second", "fourth", "fifth"]);
}
