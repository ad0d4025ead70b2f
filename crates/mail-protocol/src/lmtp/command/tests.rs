//! Tests of the grammar of commands.

use proptest::prelude::*;
use smtp_proto::{MAIL_BODY_8BITMIME, Request};

use super::*;

fn check(line: &str, expected: Result<LmtpCommand<'_>, &'static str>) {
    assert_eq!(LmtpCommand::parse(line.as_bytes()), expected, "{line:?}");
}

fn check_sender(line: &str, sender: &str) {
    check(line, Ok(LmtpCommand::Mail { sender, size: 0 }));
}

#[test]
fn upper_and_lower_case_and_space_at_the_end_make_no_difference() {
    check("daTa \r", Ok(LmtpCommand::Data));
    check_sender("mail from:<Ada@B.example>\r", "Ada@B.example");
    check("RcPt tO: <Ada@B.example> \r", Ok(LmtpCommand::Rcpt("Ada@B.example")));
}

#[test]
fn an_address_is_kept_as_typed() {
    check_sender(r#"MAIL FROM:<"a>\" b"@c>"#, r#""a>\" b"@c"#);
    check_sender(r#"MAIL FROM:<"a>\\"@c>"#, r#""a>\\"@c"#);
    check_sender("MAIL FROM:<a..b.@c>", "a..b.@c");
    check_sender("MAIL FROM:<a@[IPv6:::1]>", "a@[IPv6:::1]");
    check_sender("MAIL FROM:<jürgen@bücher.example> SMTPUTF8", "jürgen@bücher.example");
    check_sender("MAIL FROM:<postmaster>", "postmaster");
    check_sender("MAIL FROM:<>", "");
}

#[test]
fn a_route_is_ignored() {
    check("RCPT TO:<@a,@b:user@c>", Ok(LmtpCommand::Rcpt("user@c")));
    check_sender("MAIL FROM:<@a:user@c>", "user@c");
    check("RCPT TO:<@a,@b>", Err(replies::BAD_RECIPIENT));
    // Without an address this must not become the null sender.
    check("MAIL FROM:<@a:>", Err(replies::BAD_SENDER));
}

#[test]
fn an_address_has_at_most_256_bytes() {
    let (longest, too_long) = ("a".repeat(254) + "@b", "a".repeat(255) + "@b");
    check(&format!("RCPT TO:<{longest}>"), Ok(LmtpCommand::Rcpt(&longest)));
    check(&format!("RCPT TO:<{too_long}>"), Err(replies::BAD_RECIPIENT));
    check(&format!("MAIL FROM:<{too_long}>"), Err(replies::BAD_SENDER));
}

#[test]
fn an_address_has_no_control_characters() {
    for control in ['\0', '\r', '\t', '\x1b', '\x7f', '\u{85}'] {
        check(&format!("RCPT TO:<a{control}@b>"), Err(replies::BAD_RECIPIENT));
        check(&format!("RCPT TO:<\"a{control}\"@b>"), Err(replies::BAD_RECIPIENT));
        check(&format!("MAIL FROM:<a{control}@b>"), Err(replies::BAD_SENDER));
        check(&format!("LHLO a{control}b"), Err(replies::BAD_ARGUMENTS));
    }
    assert_eq!(LmtpCommand::parse(b"RCPT TO:<a\xff@b>"), Err(replies::BAD_RECIPIENT));
    assert_eq!(LmtpCommand::parse(b"RCPT TO:<@x:a\xff@b>"), Err(replies::BAD_RECIPIENT));
}

#[test]
fn a_path_is_in_brackets() {
    for arguments in ["", " ", " FROM", " FROM:", " FROM:a@b", " FROM:<a@b", " TO:<a@b>"] {
        check(&format!("MAIL{arguments}"), Err(replies::BAD_ARGUMENTS));
    }
    for arguments in [" TO:<\"a@b>", " TO:<a@b>x", " TO:<\"a\\\">", " FROM:<a@b>"] {
        check(&format!("RCPT{arguments}"), Err(replies::BAD_ARGUMENTS));
    }
    check("RCPT TO:<>", Err(replies::BAD_RECIPIENT));
}

#[test]
fn parameters_that_lhlo_does_not_list_are_refused() {
    check_sender("MAIL FROM:<a@b>  body=8BitMime  SmtpUtf8", "a@b");
    check_sender("MAIL FROM:<a@b> BODY=7BIT", "a@b");
    for parameter in ["BODY=BINARYMIME", "BODY", "RET=HDRS", "AUTH=<>", "SMTPUTF8=1", "é"] {
        check(&format!("MAIL FROM:<a@b> {parameter}"), Err(replies::UNKNOWN_PARAMETER));
    }
    check("RCPT TO:<a@b> NOTIFY=NEVER", Err(replies::UNKNOWN_PARAMETER));
}

#[test]
fn a_size_is_a_number_of_at_most_20_digits() {
    let check_size = |text: &str, size| {
        check(&format!("MAIL FROM:<> SIZE={text}"), Ok(LmtpCommand::Mail { sender: "", size }));
    };
    check_size("0", 0);
    check_size("00000000000000001000", 1000);
    check_size("99999999999999999999", usize::MAX);
    for text in ["", "-1", "+1", "1k", "000000000000000000001"] {
        check(&format!("MAIL FROM:<> SIZE={text}"), Err(replies::BAD_ARGUMENTS));
    }
}

#[test]
fn other_commands_have_no_arguments() {
    for verb in ["DATA", "QUIT", "RSET"] {
        check(&format!("{verb} now"), Err(replies::BAD_ARGUMENTS));
    }
    check("NOOP now", Ok(LmtpCommand::Noop));
    for line in ["", " ", "\r", " DATA", "DATAX", "NOOP\0", "é"] {
        check(line, Err(replies::UNKNOWN_COMMAND));
    }
}

/// Parses a line with smtp-proto, if it means the same there as here.
fn parse_with_smtp_proto(line: &str) -> Option<(String, usize, bool)> {
    match Request::parse(&mut line.as_bytes().iter()).ok()?.into_owned() {
        Request::Mail { from } => {
            Some((from.address, from.size, from.flags & MAIL_BODY_8BITMIME != 0))
        }
        Request::Rcpt { to } => Some((to.address, 0, false)),
        _ => None,
    }
}

proptest! {
    #[test]
    fn smtp_proto_understands_plain_addresses_and_parameters_the_same_way(
        local in "[a-z!#$%&'*+/=?^_`{|}~-]{1,9}(\\.[A-Z0-9]{1,9}){0,2}",
        domain in "[a-z0-9-]{1,20}(\\.[a-z]{2,9}){0,3}",
        route in "(@[a-z]{1,5}(,@[a-z]{1,5}){0,2}:)?",
        size: u32, is_8bit: bool,
    ) {
        let address = format!("{local}@{domain}");
        let body = if is_8bit { " BODY=8BITMIME" } else { "" };
        let line = format!("MAIL FROM:<{route}{address}> SIZE={size}{body}\r\n");
        let size = size as usize;
        let parsed = LmtpCommand::parse(line.trim_end_matches('\n').as_bytes());
        prop_assert_eq!(parsed, Ok(LmtpCommand::Mail { sender: &address, size }));
        prop_assert_eq!(parse_with_smtp_proto(&line), Some((address.clone(), size, is_8bit)));
        let line = format!("RCPT TO:<{route}{address}>\r\n");
        let parsed = LmtpCommand::parse(line.trim_end_matches('\n').as_bytes());
        prop_assert_eq!(parsed, Ok(LmtpCommand::Rcpt(&address)));
        prop_assert_eq!(parse_with_smtp_proto(&line), Some((address.clone(), 0, false)));
    }

    #[test]
    fn any_bytes_get_a_command_or_a_reply(line: Vec<u8>) {
        if let Err(reply) = LmtpCommand::parse(&line) {
            prop_assert!(reply.starts_with('5'));
        }
    }
}

/// smtp-proto is only an oracle because of these answers (`lmtp/command.rs`).
#[test]
fn smtp_proto_refuses_or_changes_addresses_that_exist() {
    let parse = |path| parse_with_smtp_proto(&format!("MAIL FROM:{path}\r\n")).map(|mail| mail.0);
    assert_eq!(parse("<a..b@c>"), None);
    assert_eq!(parse("<a@[192.0.2.1]>"), None);
    assert_eq!(parse("<postmaster>"), Some(String::new()));
    assert_eq!(parse("<\"a b\"@c>"), Some("a b@c".to_owned()));
}
