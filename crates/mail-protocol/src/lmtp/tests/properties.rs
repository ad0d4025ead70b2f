//! Properties of a session for any input.

use proptest::prelude::*;

use super::TestServer;
use crate::MailTransaction;

/// Pieces of sessions. A random sequence of them reaches all phases.
const PIECES: &[&[u8]] = &[
    b"LHLO mta\r\n",
    b"MAIL FROM:<eve@b> SIZE=9\r\n",
    b"MAIL FROM:<>\n",
    b"RCPT TO:<ada@a>\r\n",
    b"RCPT TO:<unknown@a>\r\n",
    b"RCPT TO:<late@a>\r\n",
    b"DATA\r\n",
    b"MAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nDATA\r\n",
    b"RSET\r\n",
    b"QUIT\r\n",
    b"BDAT 3\r\n",
    b"\r\n.\r\n",
    b".\r\n",
    b"..",
    b".",
    b"\r",
    b"\n",
    b"\0",
    b"0123456789012345678901234567890",
];

fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..9),
        // Some lines are too long.
        1 => (0..5000_usize).prop_map(|length| vec![b'x'; length]),
    ];
    let pieces = prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat());
    // Most inputs begin like a session.
    (any::<u8>(), pieces).prop_map(|(start, pieces)| {
        let start: &[u8] = if start < 40 { b"" } else { b"LHLO mta\r\n" };
        [start, &pieces].concat()
    })
}

/// Receives the chunks, and returns the replies, the messages, and whether the session is over.
fn run(chunks: &[&[u8]]) -> (String, Vec<MailTransaction>, bool) {
    let mut server = TestServer::new(100);
    let mut output = String::new();
    for chunk in chunks {
        server.receive(chunk);
        output.push_str(&server.take_output());
        assert!(server.session.message_bytes() <= 100);
    }
    (output, server.messages, server.session.is_closed())
}

/// Divides the input into chunks of the given lengths.
fn divide<'a>(mut input: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for length in lengths.iter().cycle() {
        let (chunk, rest) = input.split_at((*length).min(input.len()));
        chunks.push(chunk);
        input = rest;
        if input.is_empty() {
            break;
        }
    }
    chunks
}

/// Adds the dots that a client adds, and the end of the message.
fn stuff(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::new();
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let is_at_start = stuffed.is_empty() || stuffed.ends_with(b"\r\n");
        if is_at_start && line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed.extend_from_slice(b".\r\n");
    stuffed
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        input in inputs(),
        lengths in prop::collection::vec(1..50_usize, 1..9),
    ) {
        let whole = run(&[&input]);
        prop_assert_eq!(&whole, &run(&divide(&input, &lengths)));
        prop_assert_eq!(&whole, &run(&divide(&input, &[1])));
    }

    #[test]
    fn a_message_arrives_as_it_was_sent(
        mut message in prop::collection::vec(
            prop_oneof![3 => Just(b'.'), 3 => Just(b'\r'), 3 => Just(b'\n'), 1 => any::<u8>()], 0..98
        ),
    ) {
        message.extend_from_slice(b"\r\n");
        let start: &[u8] = b"LHLO mta\r\nMAIL FROM:<>\r\nRCPT TO:<ada@a>\r\nDATA\r\n";
        let (_, messages, _) = run(&[start, &stuff(&message), b"QUIT\r\n"]);
        let messages: Vec<_> = messages.into_iter().map(|found| found.message).collect();
        prop_assert_eq!(messages, [message]);
    }

    #[test]
    fn each_reply_is_a_line_with_a_code(input in inputs()) {
        let (output, _, _) = run(&[&input]);
        prop_assert!(output.ends_with("\r\n"));
        for line in output.split_terminator("\r\n") {
            prop_assert!(line.len() < 80 && line.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert!(line.starts_with(['2', '3', '4', '5']), "{}", line);
        }
    }
}
