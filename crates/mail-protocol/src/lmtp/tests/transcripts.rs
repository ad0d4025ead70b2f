//! Transcripts: `C:` is a line of the client, `S:` a line of the server.

use super::TestServer;
use crate::{LmtpRefusal, MailTransaction};

const MESSAGE_BYTES_MAX: usize = 1000;

/// Sends the client's lines one by one, and compares all replies. Returns the messages.
fn check(script: &str) -> Vec<MailTransaction> {
    let script: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut server = TestServer::new(MESSAGE_BYTES_MAX);
    let mut transcript = String::new();
    let mut add_output = |server: &mut TestServer, client_line: &str| {
        transcript.push_str(client_line);
        for line in server.take_output().lines() {
            transcript.push_str("S: ");
            transcript.push_str(line);
            transcript.push('\n');
        }
    };
    add_output(&mut server, "");
    for line in script.iter().filter(|line| line.starts_with("C:")) {
        let text = line.strip_prefix("C: ").unwrap_or_default();
        server.receive(format!("{text}\r\n").as_bytes());
        add_output(&mut server, &format!("{line}\n"));
    }
    assert_eq!(transcript.trim_end(), script.join("\n"));
    server.messages
}

/// Returns a server in the middle of a session, after the command LHLO.
fn greeted(message_bytes_max: usize) -> TestServer {
    let mut server = TestServer::new(message_bytes_max);
    server.receive(b"LHLO mta.example\r\n");
    server.take_output();
    server
}

/// Returns a server that waits for a message for Ada.
fn before_message(message_bytes_max: usize) -> TestServer {
    let mut server = greeted(message_bytes_max);
    server.receive(b"MAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nDATA\r\n");
    assert!(server.take_output().contains("\r\n354 "));
    server
}

#[test]
fn each_accepted_recipient_gets_a_reply_of_its_own() {
    let messages = check(
        "S: 220 mail.example LMTP ready
         C: LHLO mta.example
         S: 250-mail.example
         S: 250-8BITMIME
         S: 250-ENHANCEDSTATUSCODES
         S: 250-PIPELINING
         S: 250-SIZE 1000
         S: 250 SMTPUTF8
         C: MAIL FROM:<eve@b.example> SIZE=30 BODY=8BITMIME
         S: 250 2.1.0 sender accepted
         C: RCPT TO:<late@a.example>
         S: 250 2.1.5 recipient accepted
         C: RCPT TO:<unknown@a.example>
         S: 550 5.1.1 no such recipient
         C: RCPT TO:<Ada@a.example>
         S: 250 2.1.5 recipient accepted
         C: RCPT TO:<nospace@a.example>
         S: 250 2.1.5 recipient accepted
         C: DATA
         S: 354 end the message with a line that is a single dot
         C: Subject: hello
         C:
         C: Hello
         C: .
         S: 451 4.3.0 temporary failure, try again later
         S: 250 2.0.0 message stored
         S: 452 4.3.1 the server is full, try again later
         C: QUIT
         S: 221 2.0.0 goodbye",
    );
    let expected = MailTransaction {
        client_name: "mta.example".to_owned(),
        sender: "eve@b.example".to_owned(),
        recipients: ["late", "Ada", "nospace"].map(|name| format!("{name}@a.example")).to_vec(),
        message: b"Subject: hello\r\n\r\nHello\r\n".to_vec(),
    };
    assert_eq!(messages, [expected]);
}

#[test]
fn a_session_has_several_transactions() {
    let messages = check(
        "S: 220 mail.example LMTP ready
         C: LHLO mta
         S: 250-mail.example
         S: 250-8BITMIME
         S: 250-ENHANCEDSTATUSCODES
         S: 250-PIPELINING
         S: 250-SIZE 1000
         S: 250 SMTPUTF8
         C: MAIL FROM:<>
         S: 250 2.1.0 sender accepted
         C: RCPT TO:<ada@a>
         S: 250 2.1.5 recipient accepted
         C: DATA
         S: 354 end the message with a line that is a single dot
         C: .
         S: 250 2.0.0 message stored
         C: DATA
         S: 503 5.5.1 no valid recipients
         C: MAIL FROM:<grace@b>
         S: 250 2.1.0 sender accepted
         C: RCPT TO:<bob@a>
         S: 250 2.1.5 recipient accepted
         C: RCPT TO:<bob@a>
         S: 250 2.1.5 recipient accepted
         C: DATA
         S: 354 end the message with a line that is a single dot
         C: two
         C: .
         S: 250 2.0.0 message stored
         S: 250 2.0.0 message stored",
    );
    let messages: Vec<_> = messages
        .iter()
        .map(|message| (message.sender.as_str(), message.recipients.len(), &*message.message))
        .collect();
    assert_eq!(messages, [("", 1, b"".as_slice()), ("grace@b", 2, b"two\r\n")]);
}

#[test]
fn commands_have_an_order() {
    check(
        "S: 220 mail.example LMTP ready
         C: MAIL FROM:<>
         S: 503 5.5.1 send LHLO first
         C: RCPT TO:<ada@a>
         S: 503 5.5.1 send MAIL first
         C: DATA
         S: 503 5.5.1 no valid recipients
         C: EHLO mta
         S: 500 5.5.1 this is LMTP, use LHLO
         C: HELO mta
         S: 500 5.5.1 this is LMTP, use LHLO
         C: LHLO
         S: 501 5.5.4 bad arguments
         C: LHLO mta
         S: 250-mail.example
         S: 250-8BITMIME
         S: 250-ENHANCEDSTATUSCODES
         S: 250-PIPELINING
         S: 250-SIZE 1000
         S: 250 SMTPUTF8
         C: RCPT TO:<ada@a>
         S: 503 5.5.1 send MAIL first
         C: MAIL FROM:<>
         S: 250 2.1.0 sender accepted
         C: MAIL FROM:<eve@b>
         S: 503 5.5.1 a transaction has already begun
         C: RCPT TO:<unknown@a>
         S: 550 5.1.1 no such recipient
         C: DATA
         S: 503 5.5.1 no valid recipients
         C: RCPT TO:<ada@a>
         S: 250 2.1.5 recipient accepted
         C: RSET
         S: 250 2.0.0 done
         C: DATA
         S: 503 5.5.1 no valid recipients",
    );
}

#[test]
fn lhlo_ends_a_transaction() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(b"MAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nLHLO mta\r\nDATA\r\nMAIL FROM:<>\r\n");
    let end = "503 5.5.1 no valid recipients\r\n250 2.1.0 sender accepted\r\n";
    assert!(server.take_output().ends_with(end));
}

#[test]
fn other_commands_have_replies_too() {
    check(
        "S: 220 mail.example LMTP ready
         C: NOOP hello
         S: 250 2.0.0 done
         C: RSET
         S: 250 2.0.0 done
         C: VRFY ada
         S: 252 2.5.0 use RCPT to check an address
         C: EXPN list
         S: 502 5.5.1 command not implemented
         C: STARTTLS
         S: 502 5.5.1 command not implemented
         C: AUTH PLAIN AGEAYg==
         S: 502 5.5.1 command not implemented
         C: HELP
         S: 502 5.5.1 command not implemented
         C: FROB
         S: 500 5.5.2 unknown command
         C:
         S: 500 5.5.2 unknown command",
    );
}

#[test]
fn a_chunk_of_a_message_is_not_taken_for_commands() {
    check(
        "S: 220 mail.example LMTP ready
         C: BDAT 16 LAST
         S: 502 5.5.1 command not implemented
         C: MAIL FROM:<a@b>",
    );
}

#[test]
fn recipients_are_refused_for_several_reasons() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(b"MAIL FROM:<>\r\nRCPT TO:<full@a>\r\nRCPT TO:<blocked@a>\r\n");
    server.receive(b"RCPT TO:<offline@a>\r\nRCPT TO:<>\r\nRCPT TO:<a@b> ORCPT=x\r\n");
    assert_eq!(
        server.take_output(),
        "250 2.1.0 sender accepted\r\n\
         452 4.2.2 the mailbox is full, try again later\r\n\
         552 5.2.2 the mailbox is full\r\n\
         451 4.3.0 temporary failure, try again later\r\n\
         501 5.1.3 bad recipient address\r\n\
         555 5.5.4 parameter not supported\r\n"
    );
}

#[test]
fn only_accepted_recipients_count_against_the_limit() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(b"MAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nRCPT TO:<unknown@a>\r\n");
    server.receive(b"RCPT TO:<bob@a>\r\nRCPT TO:<cyd@a>\r\nRCPT TO:<dee@a>\r\nDATA\r\n.\r\n");
    let replies = server.take_output();
    assert_eq!(replies.matches("250 2.1.5").count(), 3);
    assert!(replies.contains("\r\n452 4.5.3 too many recipients\r\n354 "));
    assert_eq!(server.messages[0].recipients, ["ada@a", "bob@a", "cyd@a"]);
}

#[test]
fn pipelined_commands_are_answered_at_once() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(
        b"RSET\r\nMAIL FROM:<>\r\nRCPT TO:<unknown@a>\r\nRCPT TO:<ada@a>\r\nDATA\r\n\
          hello\r\n.\r\nMAIL FROM:<>\r\nQUIT\r\nNOOP\r\n",
    );
    assert_eq!(
        server.take_output(),
        "250 2.0.0 done\r\n\
         250 2.1.0 sender accepted\r\n\
         550 5.1.1 no such recipient\r\n\
         250 2.1.5 recipient accepted\r\n\
         354 end the message with a line that is a single dot\r\n\
         250 2.0.0 message stored\r\n\
         250 2.1.0 sender accepted\r\n\
         221 2.0.0 goodbye\r\n"
    );
    assert!(server.session.is_closed());
}

#[test]
fn input_after_an_event_waits_for_the_answer() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    let mut input: &[u8] = b"MAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nRSET\r\n";
    assert!(server.session.next_event(&mut input).is_some());
    assert_eq!(input, b"RSET\r\n");
    assert!(server.session.next_event(&mut input).is_none());
    assert_eq!(input, b"RSET\r\n");
    server.session.answer_recipient(Ok(()));
    assert!(server.session.next_event(&mut input).is_none());
    assert!(input.is_empty());
}

#[test]
fn a_size_above_the_limit_is_refused_at_mail() {
    let mut server = greeted(1000);
    server.receive(b"MAIL FROM:<> SIZE=1001\r\nMAIL FROM:<> SIZE=1000\r\n");
    assert_eq!(
        server.take_output(),
        "552 5.3.4 the message is too large\r\n250 2.1.0 sender accepted\r\n"
    );
}

#[test]
fn a_message_above_the_limit_is_drained_and_refused_for_each_recipient() {
    let mut server = greeted(100_000);
    server.receive(b"MAIL FROM:<> SIZE=5\r\nRCPT TO:<ada@a>\r\nRCPT TO:<bob@a>\r\nDATA\r\n");
    server.take_output();
    let line = [b'x'; 1022];
    for _ in 0..51 * 1024 {
        server.receive(&line);
        server.receive(b"\r\n");
        assert!(server.session.message_bytes() <= 100_000);
    }
    assert_eq!((server.session.message_bytes(), server.take_output()), (0, String::new()));
    server.receive(b".\r\nNOOP\r\n");
    assert_eq!(
        server.take_output(),
        "552 5.3.4 the message is too large\r\n552 5.3.4 the message is too large\r\n\
         250 2.0.0 done\r\n"
    );
    assert!(server.messages.is_empty());
}

#[test]
fn a_message_may_be_as_large_as_the_limit() {
    let mut server = before_message(6);
    server.receive(b"..234\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nDATA\r\n12345\r\n.\r\n");
    assert!(server.take_output().ends_with("552 5.3.4 the message is too large\r\n"));
    assert_eq!(server.messages.len(), 1);
}

#[test]
fn a_discarded_message_frees_its_memory_and_gets_the_refusal() {
    let mut server = before_message(1000);
    server.receive(b"hello\r\n");
    assert_eq!(server.session.message_bytes(), 7);
    server.session.discard_message(LmtpRefusal::SystemFull);
    server.receive(&[b'x'; 2000]);
    assert_eq!(server.session.message_bytes(), 0);
    server.receive(b"\r\n.\r\nNOOP\r\n");
    assert_eq!(
        server.take_output(),
        "452 4.3.1 the server is full, try again later\r\n250 2.0.0 done\r\n"
    );
    assert!(server.messages.is_empty());
}

/// Sends the text after DATA, and checks the message and the commands after it.
fn check_message(text: &[u8], message: &[u8]) {
    let mut server = before_message(MESSAGE_BYTES_MAX);
    server.receive(text);
    let messages: Vec<_> = server.messages.iter().map(|found| &*found.message).collect();
    assert_eq!(messages, [message], "{:?}", text.escape_ascii().to_string());
    assert_eq!(server.take_output(), "250 2.0.0 message stored\r\n");
}

#[test]
fn a_message_is_stored_byte_for_byte_without_added_dots() {
    check_message(b".\r\n", b"");
    check_message(b"..\r\n.\r\n", b".\r\n");
    check_message(b".a\r\n...\r\nb.\r\n.\r\n", b"a\r\n..\r\nb.\r\n");
    check_message(b"\0\xff\n\n\ra\r\r\n.\r\n", b"\0\xff\n\n\ra\r\r\n");
    check_message(b".\rx\r\n.\r\r\n.\r\n", b"\rx\r\n\r\r\n");
}

/// Ends of a message in the eyes of other programs (SMTP smuggling).
#[test]
fn only_a_dot_between_two_crlf_ends_a_message() {
    for end in [".\n", "\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\n", "\r\n.\r", "\r\n.\0\r\n"]
    {
        let text = format!("a{end}MAIL FROM:<x@y>\r\n.\r\n");
        // Only a dot after CR LF was added by the client.
        let message = format!("a{}MAIL FROM:<x@y>\r\n", end.replace("\r\n.", "\r\n"));
        check_message(text.as_bytes(), message.as_bytes());
    }
}

#[test]
fn a_long_line_is_one_error() {
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(&[b'x'; 10_000]);
    assert_eq!(server.take_output(), "");
    server.receive(b"\r\nNOOP\r\n");
    assert_eq!(server.take_output(), "500 5.5.2 line too long\r\n250 2.0.0 done\r\n");
    for (length, reply) in
        [(4096 - 6, "250 2.0.0 done\r\n"), (4096 - 5, "500 5.5.2 line too long\r\n")]
    {
        server.receive(format!("NOOP {}\r\n", "x".repeat(length)).as_bytes());
        assert_eq!(server.take_output(), reply);
    }
}

#[test]
fn the_session_closes_after_20_errors_without_a_message() {
    let errors = b"FROB\r\n".repeat(19);
    let mut server = greeted(MESSAGE_BYTES_MAX);
    server.receive(&errors);
    server.receive(b"MAIL FROM:<>\r\nRCPT TO:<unknown@a>\r\nRCPT TO:<ada@a>\r\nDATA\r\n.\r\n");
    server.receive(&errors);
    assert!(!server.session.is_closed());
    server.take_output();
    server.receive(b"FROB\r\nNOOP\r\n");
    assert_eq!(server.take_output(), "421 4.7.0 too many errors\r\n");
    assert!(server.session.is_closed());
}
