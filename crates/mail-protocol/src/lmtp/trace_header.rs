//! The header fields that a server puts before a message when it delivers it (RFC 5321 §4.4).

use core::net::IpAddr;

use time::OffsetDateTime;

use super::command::{ADDRESS_BYTES_MAX, CLIENT_NAME_BYTES_MAX};
use super::transaction::MailTransaction;

/// Returns the header fields `Return-Path`, `Delivered-To` and `Received` of a delivery, each ended
/// by CR LF.
///
/// `peer` is the address of the client, `server_name` the host name of the server, and `received_ms`
/// the time in milliseconds since 1970. Texts are shortened to the limits of their kind, and
/// characters that do not belong in them are replaced, so they cannot add lines or fields. No line
/// is longer than 300 bytes.
pub fn trace_header(
    transaction: &MailTransaction,
    recipient: &str,
    peer: IpAddr,
    server_name: &str,
    received_ms: u64,
) -> String {
    let sender = clean(&transaction.sender, ADDRESS_BYTES_MAX, |c| !c.is_control());
    let recipient = clean(recipient, ADDRESS_BYTES_MAX, |c| !c.is_control());
    let client_name = clean(&transaction.client_name, CLIENT_NAME_BYTES_MAX, is_name_character);
    let server_name = clean(server_name, CLIENT_NAME_BYTES_MAX, is_name_character);
    let peer = match peer.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("IPv6:{address}"),
    };
    let date = format_date(received_ms);
    format!(
        "Return-Path: <{sender}>\r\nDelivered-To: {recipient}\r\nReceived: from {client_name} \
         ([{peer}])\r\n\tby {server_name} with LMTP;\r\n\t{date}\r\n"
    )
}

/// Replaces each character that is not allowed by `?`, and omits those beyond the limit.
fn clean(text: &str, bytes_max: usize, is_allowed: fn(char) -> bool) -> String {
    let end = text.floor_char_boundary(bytes_max);
    text[..end].chars().map(|c| if is_allowed(c) { c } else { '?' }).collect()
}

/// Returns whether a host name or an address literal such as `[IPv6:::1]` may have the character.
fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._:[]".contains(c)
}

/// Formats a time as in RFC 5322 §3.3, in UTC. Times after the year 9999 become 1970.
fn format_date(ms: u64) -> String {
    let seconds = (ms / 1000).cast_signed();
    let moment = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (weekday, month) = (moment.weekday().to_string(), moment.month().to_string());
    let (hour, minute, second) = moment.to_hms();
    let (day, year) = (moment.day(), moment.year());
    format!("{weekday:.3}, {day} {month:.3} {year} {hour:02}:{minute:02}:{second:02} +0000")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(sender: &str, recipient: &str, client: &str, peer: &str, server: &str) -> String {
        let transaction = MailTransaction {
            client_name: client.to_owned(),
            sender: sender.to_owned(),
            ..MailTransaction::default()
        };
        trace_header(&transaction, recipient, peer.parse().unwrap(), server, 784_111_777_999)
    }

    #[test]
    fn the_header_names_both_addresses_both_hosts_and_the_time() {
        assert_eq!(
            header("eve@b.example", "ada@a.example", "mta.example", "192.0.2.7", "mail.a.example"),
            "Return-Path: <eve@b.example>\r\n\
             Delivered-To: ada@a.example\r\n\
             Received: from mta.example ([192.0.2.7])\r\n\
             \tby mail.a.example with LMTP;\r\n\
             \tSun, 6 Nov 1994 08:49:37 +0000\r\n"
        );
    }

    #[test]
    fn a_bounce_has_an_empty_return_path() {
        assert!(header("", "a@b", "c", "::1", "d").starts_with("Return-Path: <>\r\n"));
    }

    #[test]
    fn an_ipv6_address_is_marked() {
        assert!(header("", "a@b", "c", "2001:db8::1", "d").contains(" ([IPv6:2001:db8::1])\r\n"));
        assert!(header("", "a@b", "c", "::ffff:192.0.2.7", "d").contains(" ([192.0.2.7])\r\n"));
    }

    #[test]
    fn a_name_cannot_end_a_comment_or_a_line() {
        let header = header("", "a@b", "x)\r\nSubject: (y", "::1", "é");
        assert!(header.contains("\r\nReceived: from x???Subject:??y ([IPv6:::1])\r\n\tby ? with"));
    }

    #[test]
    fn dates_have_the_form_of_rfc_5322() {
        assert_eq!(format_date(0), "Thu, 1 Jan 1970 00:00:00 +0000");
        assert_eq!(format_date(1_709_210_096_000), "Thu, 29 Feb 2024 12:34:56 +0000");
        assert_eq!(format_date(253_402_300_799_999), "Fri, 31 Dec 9999 23:59:59 +0000");
        assert_eq!(format_date(u64::MAX), "Thu, 1 Jan 1970 00:00:00 +0000");
    }

    proptest! {
        #[test]
        fn foreign_text_adds_no_line(
            sender in "\\PC*|(?s).{0,600}", recipient in "(?s).{0,600}", client in "(?s).{0,600}",
            server in "(?s).{0,600}", ms: u64
        ) {
            let transaction =
                MailTransaction { client_name: client, sender, ..MailTransaction::default() };
            let peer = IpAddr::from([192, 0, 2, 7]);
            let header = trace_header(&transaction, &recipient, peer, &server, ms);
            let lines: Vec<&str> = header.split("\r\n").collect();
            let starts = ["Return-Path: <", "Delivered-To: ", "Received: from ", "\tby ", "\t", ""];
            prop_assert_eq!(lines.len(), starts.len());
            for (line, start) in lines.iter().zip(starts) {
                let rest = line.strip_prefix(start);
                prop_assert!(rest.is_some_and(|rest| !rest.contains(char::is_control)), "{:?}", line);
                prop_assert!(line.len() <= 300, "{:?}", line);
            }
        }
    }
}
