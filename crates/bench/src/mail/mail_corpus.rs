//! The messages that are delivered: plain text, HTML and attachments, in sizes like those of real
//! mail.
//!
//! Warren compresses what it receives, so the texts must compress like real ones: their words have
//! the frequencies of words in a language (Zipf's law), and attachments are base64 of random bytes.
//!
//! # Invariants
//! - The corpus is the same in every run.
//! - Lines end with CRLF, no line begins with a dot, and each message ends with the line that ends
//!   it in LMTP: a message is sent unchanged.

use std::fmt::Write;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 1;
const MESSAGES_COUNT: usize = 400;
/// Of this many messages in a row, these are HTML and have attachments; the others are plain text.
const CYCLE: usize = 20;
const HTML_PER_CYCLE: usize = 3;
const ATTACHMENTS_PER_CYCLE: usize = 1;

/// The bytes of a text, of the HTML form of a text, and of an attachment in base64, from and to.
/// Together they make a mean of about 15 KB.
const TEXT_BYTES: (usize, usize) = (500, 6_500);
const HTML_BYTES: (usize, usize) = (10_000, 40_000);
const ATTACHMENT_BYTES: (usize, usize) = (60_000, 200_000);

const WORDS_COUNT: usize = 4_000;
/// The most frequent words have one syllable.
const SHORT_WORDS_COUNT: usize = 100;
const SYLLABLES_COUNT_MAX: usize = 4;
const CONSONANTS: &[u8] = b"bcdfghjklmnprstvw";
const VOWELS: &[u8] = b"aaeeeiioou";
/// The width of a text's lines, and the words of its paragraphs at most.
const LINE_BYTES: usize = 72;
const PARAGRAPH_WORDS: (usize, usize) = (20, 100);

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The length of a line of base64 (RFC 2045, section 6.8).
const BASE64_LINE_BYTES: usize = 76;
/// The lines of base64 in a DKIM signature of 2,048 bits.
const SIGNATURE_LINES: usize = 5;
/// The first bytes of a PDF file, `%PDF-1.`, in base64.
const PDF_START: &str = "JVBERi0xLjcN";

const BOUNDARY: &str = "=_next-part";
const END: &str = ".\r\n";

/// The messages, in the form in which they are sent.
pub(super) struct MailCorpus(Vec<String>);

impl MailCorpus {
    pub(super) fn new() -> Self {
        let mut writer = MessageWriter::new();
        Self((0..MESSAGES_COUNT).map(|index| writer.message(index)).collect())
    }

    /// Returns one of the messages.
    pub(super) fn pick(&self, random: &mut SmallRng) -> &str {
        &self.0[random.random_range(0..self.0.len())]
    }

    /// Returns the mean size of the messages in bytes.
    pub(super) fn mean_bytes(&self) -> usize {
        self.0.iter().map(String::len).sum::<usize>() / self.0.len()
    }
}

struct MessageWriter {
    random: SmallRng,
    words: Vec<String>,
}

impl MessageWriter {
    fn new() -> Self {
        let mut random = SmallRng::seed_from_u64(SEED);
        let words = (0..WORDS_COUNT).map(|rank| word(&mut random, rank)).collect();
        Self { random, words }
    }

    fn message(&mut self, index: usize) -> String {
        let mut message = String::new();
        self.header(&mut message, index);
        let turn = index % CYCLE;
        let text = self.size(TEXT_BYTES);
        if turn < ATTACHMENTS_PER_CYCLE {
            begin_multipart(&mut message, "mixed");
            self.text_part(&mut message, text);
            self.attachment_part(&mut message);
            end_multipart(&mut message);
        } else if turn < ATTACHMENTS_PER_CYCLE + HTML_PER_CYCLE {
            begin_multipart(&mut message, "alternative");
            self.text_part(&mut message, text);
            self.html_part(&mut message);
            end_multipart(&mut message);
        } else {
            message.push_str("Content-Type: text/plain; charset=utf-8\r\n\r\n");
            self.text(&mut message, text);
        }
        message.push_str(END);
        message
    }

    fn size(&mut self, (from, to): (usize, usize)) -> usize {
        self.random.random_range(from..=to)
    }

    fn word(&mut self) -> &str {
        // Rank r has a share of 1/r.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank below the number of words"
        )]
        let rank = (self.words.len() as f64).powf(self.random.random_range(0.0..1.0)) as usize;
        &self.words[rank.min(self.words.len()) - 1]
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word().to_owned()).collect::<Vec<_>>().join(" ")
    }

    fn header(&mut self, message: &mut String, index: usize) {
        let (from, subject) = (self.words(2), self.words(6));
        let id: u64 = self.random.random();
        let second = index % 60;
        message
            .push_str("DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com;\r\n");
        message.push_str(" s=mail; h=from:to:subject:date:message-id:mime-version; b=\r\n");
        for _ in 0..SIGNATURE_LINES {
            message.push(' ');
            self.base64_line(message);
        }
        let written = write!(
            message,
            "Received: from mx.example.com (mx.example.com [192.0.2.25])\r\n\
             \tby mail.example.org (Postfix) with ESMTPS id {id:X}\r\n\
             \tfor <user@example.org>; Sun, 29 Nov 2026 05:00:{second:02} +0100 (CET)\r\n\
             Date: Sun, 29 Nov 2026 05:00:{second:02} +0100\r\n\
             From: {from} <bob@example.com>\r\n\
             To: user@example.org\r\n\
             Subject: {subject}\r\n\
             Message-ID: <{id:016x}@example.com>\r\n\
             List-Unsubscribe: <https://example.com/unsubscribe/{id:016x}>\r\n\
             MIME-Version: 1.0\r\n"
        );
        written.expect("a string takes everything");
    }

    /// Writes paragraphs of about this many bytes.
    fn text(&mut self, message: &mut String, bytes: usize) {
        let end = message.len() + bytes;
        while message.len() < end {
            let mut line_start = message.len();
            for _ in 0..self.size(PARAGRAPH_WORDS) {
                let word = self.word();
                if message.len() - line_start + word.len() > LINE_BYTES {
                    message.push_str("\r\n");
                    line_start = message.len();
                } else if message.len() > line_start {
                    message.push(' ');
                }
                message.push_str(word);
            }
            message.push_str(".\r\n\r\n");
        }
    }

    fn text_part(&mut self, message: &mut String, bytes: usize) {
        begin_part(message, "text/plain; charset=utf-8\r\n");
        self.text(message, bytes);
    }

    fn html_part(&mut self, message: &mut String) {
        begin_part(message, "text/html; charset=utf-8\r\n");
        let end = message.len() + self.size(HTML_BYTES);
        message.push_str("<html><body style=\"margin:0;padding:0\">\r\n");
        while message.len() < end {
            let id: u64 = self.random.random();
            let words = self.size((5, 10));
            let (link, words) = (self.words(3), self.words(words));
            let written = write!(
                message,
                "<table width=\"600\" cellpadding=\"0\" cellspacing=\"0\"><tr>\r\n\
                 <td style=\"padding:8px 16px;font-family:Arial,sans-serif;font-size:14px\">\r\n\
                 {words}\r\n\
                 <a href=\"https://example.com/c/{id:016x}\" style=\"color:#0055aa\">{link}</a>\r\n\
                 </td></tr></table>\r\n"
            );
            written.expect("a string takes everything");
        }
        message.push_str("</body></html>\r\n");
    }

    fn attachment_part(&mut self, message: &mut String) {
        begin_part(
            message,
            "application/pdf; name=\"report.pdf\"\r\n\
             Content-Disposition: attachment; filename=\"report.pdf\"\r\n\
             Content-Transfer-Encoding: base64\r\n",
        );
        let end = message.len() + self.size(ATTACHMENT_BYTES);
        message.push_str(PDF_START);
        message.push_str("\r\n");
        while message.len() < end {
            self.base64_line(message);
        }
    }

    fn base64_line(&mut self, message: &mut String) {
        for _ in 0..BASE64_LINE_BYTES {
            message.push(one_of(&mut self.random, BASE64));
        }
        message.push_str("\r\n");
    }
}

fn begin_multipart(message: &mut String, kind: &str) {
    let header = ["Content-Type: multipart/", kind, "; boundary=\"", BOUNDARY, "\"\r\n\r\n"];
    message.extend(header);
}

fn begin_part(message: &mut String, kind: &str) {
    message.extend(["--", BOUNDARY, "\r\nContent-Type: ", kind, "\r\n"]);
}

fn end_multipart(message: &mut String) {
    message.extend(["--", BOUNDARY, "--\r\n"]);
}

fn word(random: &mut SmallRng, rank: usize) -> String {
    let syllables =
        if rank < SHORT_WORDS_COUNT { 1 } else { random.random_range(2..=SYLLABLES_COUNT_MAX) };
    let mut word = String::new();
    for _ in 0..syllables {
        word.push(one_of(random, CONSONANTS));
        word.push(one_of(random, VOWELS));
    }
    if random.random() {
        word.push(one_of(random, CONSONANTS));
    }
    word
}

fn one_of(random: &mut SmallRng, letters: &[u8]) -> char {
    char::from(letters[random.random_range(0..letters.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_planned_kinds_and_sizes_and_need_no_change() {
        let corpus = MailCorpus::new();
        let with = |text: &str| corpus.0.iter().filter(|message| message.contains(text)).count();
        let cycles = MESSAGES_COUNT / CYCLE;
        assert_eq!(with("application/pdf"), cycles * ATTACHMENTS_PER_CYCLE);
        assert_eq!(with("text/html"), cycles * HTML_PER_CYCLE);
        assert!((14_000..16_000).contains(&corpus.mean_bytes()), "{}", corpus.mean_bytes());
        for message in &corpus.0 {
            let lines: Vec<&str> = message.split("\r\n").collect();
            let (text, end) = lines.split_at(lines.len() - 2);
            assert_eq!(end, [".", ""]);
            for line in text {
                assert!(!line.starts_with('.') && !line.contains('\n') && line.len() <= 998);
            }
        }
    }

    #[test]
    fn every_run_has_the_same_messages() {
        assert_eq!(MailCorpus::new().0, MailCorpus::new().0);
    }
}
