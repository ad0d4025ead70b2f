//! Tests messages and commands that other LMTP clients send rarely, by mistake or on purpose.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::file_modes::wait_until;
use crate::lmtp_client::LmtpClient;
use crate::mail_delivery::{serve, subjects, with_address};
use crate::processes::{ServeProcess, warren, with_input};
use crate::random::SplitMixRng;

const ADMIN_TOKEN: &str = "a token that only the operator knows";

/// Returns the messages that must be stored as they came. Each ends with CR LF.
fn unusual_messages() -> Vec<Vec<u8>> {
    let multipart =
        |depth| format!("Content-Type: multipart/mixed; boundary=b{depth}\r\n\r\n--b{depth}\r\n");
    let nested = (0..10_000).map(multipart).collect::<Vec<_>>().concat();
    let forwarded = "Content-Type: message/rfc822\r\n\r\n".repeat(10_000);
    let parts =
        format!("Content-Type: multipart/mixed; boundary=b\r\n{}", "\r\n--b\r\n".repeat(20_000));
    vec![
        b"\r\n".to_vec(),
        b"no header\r\n".to_vec(),
        b"Subject: a NUL \0 here\r\n\r\n\0\0\r\n".to_vec(),
        b"Subject: M\xfcsli\r\nFrom: \xff\xfe <bob@example.com>\r\n\r\n\x80\r\n".to_vec(),
        // Other line ends must not end the message, and nothing in it is a command.
        b"Subject: bare LF\n\ntext\n.\nMAIL FROM:<eve@example.com>\n\r\n".to_vec(),
        b"Subject: bare CR\r\r\ntext\r.\rQUIT\r\n\n.\r\nRSET\r\n".to_vec(),
        b"Subject: dots\r\n\r\n.\r\n..\r\n.text\r\n".to_vec(),
        [&b"Subject: long line\r\n\r\n"[..], &b"x".repeat(2 << 20), b"\r\n"].concat(),
        [&b"Subject: "[..], &b"long header ".repeat(100_000), b"\r\n\r\ntext\r\n"].concat(),
        nested.into_bytes(),
        forwarded.into_bytes(),
        parts.into_bytes(),
    ]
}

/// Adds a dot to each line that begins with one, and the end of the message.
fn with_dots(message: &[u8]) -> Vec<u8> {
    let mut sent = Vec::with_capacity(message.len() + 100);
    for (index, byte) in message.iter().enumerate() {
        if *byte == b'.' && (index == 0 || message[..index].ends_with(b"\r\n")) {
            sent.push(b'.');
        }
        sent.push(*byte);
    }
    sent.extend_from_slice(b".\r\n");
    sent
}

#[test]
fn a_message_of_any_bytes_is_stored_as_it_came() {
    let mail = with_address();
    let server = serve(&mail);
    let mut client = LmtpClient::connect(&server).unwrap();
    let messages = unusual_messages();
    for message in &messages {
        client.command("MAIL FROM:<bob@example.com> BODY=8BITMIME").unwrap();
        client.command("RCPT TO:<ada@example.org>").unwrap();
        client.command("DATA").unwrap();
        client.send(&with_dots(message)).unwrap();
        assert_eq!(client.reply().unwrap(), "250 2.0.0 message stored");
    }
    assert_eq!(client.command("NOOP").unwrap(), "250 2.0.0 done");
    assert_eq!(mail.mailbox("INBOX")["messages_count"], messages.len());

    let folder = mail.0.at("exported");
    mail.run(&["export", "maildir", &folder]);
    let files = fs::read_dir(format!("{folder}/cur")).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), messages.len());
    for (uid, message) in (1..).zip(&messages) {
        let name = format!("U{uid}.");
        let file = files.iter().find(|file| file.to_str().unwrap().contains(&name)).unwrap();
        let stored = fs::read(file).unwrap();
        let header = stored.strip_suffix(&message[..]).unwrap_or_else(|| panic!("message {uid}"));
        assert!(header.starts_with(b"Return-Path: <bob@example.com>\r\n"), "message {uid}");
        assert!(header.ends_with(b"\r\n") && header.len() < 1_000, "message {uid}");
    }
    // The commands work with each of them.
    for uid in 1..=messages.len() {
        mail.run(&["show", &uid.to_string()]);
    }
    mail.run(&["search", "text"]);
    server.stop();
}

#[test]
fn wrong_commands_and_large_messages_get_a_code_and_the_connection_stays_open() {
    let mail = with_address();
    let server = serve(&mail);
    let mut client = LmtpClient::connect(&server).unwrap();
    let long = format!("RCPT TO:<{}@example.org>", "a".repeat(5_000));
    for (line, code) in [
        ("HELO client.example", "500 5.5.1"),
        ("GET / HTTP/1.1", "500 5.5.2"),
        ("\u{fc}\0", "500 5.5.2"),
        ("DATA", "503 5.5.1"),
        ("RCPT TO:<ada@example.org>", "503 5.5.1"),
        ("MAIL FROM:<bob", "501 5.5.4"),
        ("MAIL FROM:<b\0b@example.com>", "501 5.1.7"),
        ("MAIL FROM:<bob@example.com> RET=FULL", "555 5.5.4"),
        ("MAIL FROM:<bob@example.com>", "250 2.1.0"),
        ("MAIL FROM:<bob@example.com>", "503 5.5.1"),
        ("RCPT TO:<eve@example.org>", "550 5.1.1"),
        ("RCPT TO:<ada@example.com>", "550 5.1.1"),
        (&long, "500 5.5.2"),
        ("RCPT TO:<>", "501 5.1.3"),
        ("DATA", "503 5.5.1"),
        ("VRFY ada", "252 2.5.0"),
        ("RCPT TO:<ada@example.org>", "250 2.1.5"),
        ("DATA", "354 "),
    ] {
        let reply = client.command(line).unwrap();
        assert!(reply.starts_with(code), "{line}: {reply}");
    }
    // 51 MiB, without a size in the command MAIL.
    let line = [&b"x".repeat(1022)[..], b"\r\n"].concat();
    for _ in 0..51 {
        client.send(&line.repeat(1024)).unwrap();
    }
    client.send(b".\r\n").unwrap();
    assert_eq!(client.reply().unwrap(), "552 5.3.4 the message is too large");

    // All commands at once, and a second message after the first.
    let one = |subject: &str| {
        format!(
            "MAIL FROM:<bob@example.com>\r\nRCPT TO:<ada@example.org>\r\n\
             RCPT TO:<eve@example.org>\r\nDATA\r\nSubject: {subject}\r\n\r\ntext\r\n.\r\n"
        )
    };
    client.send(format!("{}{}QUIT\r\n", one("first"), one("second")).as_bytes()).unwrap();
    let replies = ["250 2.1.0", "250 2.1.5", "550 5.1.1", "354 ", "250 2.0.0"];
    for code in replies.into_iter().cycle().take(2 * replies.len()).chain(["221 2.0.0"]) {
        let reply = client.reply().unwrap();
        assert!(reply.starts_with(code), "{code}: {reply}");
    }
    assert_eq!(subjects(&mail), ["first", "second"]);

    let mut client = LmtpClient::connect(&server).unwrap();
    let replies: Vec<String> = (0..20).map(|_| client.command("NONSENSE").unwrap()).collect();
    assert_eq!(replies[18..], ["500 5.5.2 unknown command", "421 4.7.0 too many errors"]);
    client.reply().unwrap_err();
    server.stop();
}

#[test]
fn an_account_without_room_is_refused_for_now_and_a_message_above_its_quota_for_good() {
    let mail = with_address();
    let data = &mail.0.data;
    let token = mail.0.write("token", ADMIN_TOKEN);
    let options = ["--lmtp", "127.0.0.1:0", "--account-mail-bytes-max", "2000000"];
    let server =
        ServeProcess::start(data, &[&options[..], &["--admin-token-file", &token]].concat());
    let mut client = LmtpClient::connect(&server).unwrap();
    let mut rng = SplitMixRng::of(1);
    // Noise, which does not become smaller when it is compressed.
    let mut line = |_| format!("{:016x}{:016x}\r\n", rng.next(), rng.next());
    let mut noise = |lines: usize| (0..lines).map(&mut line).collect::<Vec<_>>().concat();
    let (small, large) = (noise(20_000), noise(200_000));
    let mut deliver = |to: &str, message: &str| client.deliver(to, message).unwrap();
    let refused = deliver("ada@example.org", &large);
    assert_eq!(refused, "552 5.2.2 the mailbox is full");
    let accepted = (0..20).take_while(|_| deliver("ada@example.org", &small).starts_with("250"));
    let accepted = accepted.count();
    assert!((3..8).contains(&accepted), "{accepted}");
    let refused = deliver("ada@example.org", &small);
    assert_eq!(refused, "452 4.2.2 the mailbox is full, try again later");
    assert!(deliver("eve@example.org", "").starts_with("550"));
    // A new limit counts at once.
    let quota = ["account", "quota", "ada", "--data", data, "--mail-bytes", "20000000"];
    warren(&quota).succeeded();
    assert!(deliver("ada@example.org", &large).starts_with("250"));
    let stored = accepted + 1;
    let check = |lines: &[String]| {
        let metrics = server.get_as("/metrics", ADMIN_TOKEN);
        for line in lines {
            assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
        }
    };
    check(&[
        format!("warren_mail_delivered_total {stored}"),
        "warren_mail_refused_total 4".to_owned(),
        "warren_mail_filed_total 0".to_owned(),
        format!("warren_mail_waiting_deliveries{{age=\"1h\"}} {stored}"),
    ]);
    let overview = server.admin("overview", ADMIN_TOKEN, None);
    assert_eq!(overview["mail"]["waiting_count"], stored);
    mail.mailbox("INBOX");
    check(&[
        format!("warren_mail_filed_total {stored}"),
        "warren_mail_waiting_deliveries{age=\"+Inf\"} 0".to_owned(),
        "warren_mail_connections_total 1".to_owned(),
    ]);
    server.stop();
}

#[test]
fn an_address_has_a_limited_number_of_connections() {
    let mail = with_address();
    let server = serve(&mail);
    let mut open: Vec<LmtpClient> =
        (0..128).map(|_| LmtpClient::connect(&server).unwrap()).collect();
    let mut refused = LmtpClient::greeted(&server).unwrap();
    assert_eq!(refused.1, "421 4.7.0 too many connections");
    refused.0.reply().unwrap_err();
    assert_eq!(open.pop().unwrap().command("QUIT").unwrap(), "221 2.0.0 goodbye");
    wait_until("a place for another connection", || {
        LmtpClient::greeted(&server).unwrap().1.starts_with("220")
    });
    server.stop();
}

#[test]
fn swaks_delivers_by_lmtp() {
    let mail = with_address();
    let server = serve(&mail);
    let file = mail.0.at("message");
    let mut message = fs::File::create(&file).unwrap();
    message.write_all(b"Subject: from swaks\n\n.\n..dots\n").unwrap();
    for options in [&[][..], &["--pipeline"]] {
        let mut swaks = Command::new("swaks");
        swaks.args(["--protocol", "LMTP", "--server", server.lmtp.as_deref().unwrap()]);
        swaks.args(["--from", "bob@example.com", "--to", "ada@example.org,ada+2@example.org"]);
        swaks.args(["--data", &format!("@{file}")]).args(options);
        with_input(&mut swaks, "").succeeded();
    }
    assert_eq!(subjects(&mail), ["from swaks"; 4]);
    assert_eq!(mail.run(&["show", "1"])["text"], ".\r\n..dots\r\n\r\n");
    server.stop();
}
