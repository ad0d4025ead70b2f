//! Reads mbox files: messages one after the other, each after a line that begins with `From `.
//!
//! The variant is mboxrd: a line of a message that begins with `>`, then perhaps more of them, then
//! `From `, had one `>` less before it was written. The empty line before the next message is not
//! part of a message. Some programs do not quote such lines. So a line begins a message only if it
//! comes after an empty line or ends with a time.
//!
//! `mail-parser` has a reader, too. It holds a message of any length in memory, and keeps the empty
//! line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use blake3::Hasher;
use time::PrimitiveDateTime;
use time::macros::format_description;

use super::{ImportRun, MailImportReport, SourceMessage, io, is_too_large, item};
use crate::error::{Error, Result};
use crate::header_fields::HeaderFields;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::mail_vault::MailVault;
use crate::message_flags::{ANSWERED, DELETED, DRAFT, FLAGGED, MessageFlags, SEEN};

/// The maximum length of a line that begins with `From ` between two messages.
const FROM_LINE_BYTES_MAX: usize = 1_024;

/// The maximum size of a message with the empty line after it.
const UNTRIMMED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + 2;

/// The header fields that mail programs change in an mbox after a message has arrived.
const CHANGING_FIELDS: [&str; 8] = [
    "Status",
    "X-Status",
    "X-Keywords",
    "X-UID",
    "X-IMAPbase",
    "X-Mozilla-Status",
    "X-Mozilla-Status2",
    "X-Mozilla-Keys",
];

/// Imports an mbox file into the mailbox with this path, which is created if it is missing.
/// `progress` is called after each batch.
///
/// Flags come from the header fields `Status` and `X-Status`, which mutt and Dovecot write.
pub fn import_mbox(
    vault: &MailVault,
    path: &Path,
    mailbox_path: &str,
    progress: &mut dyn FnMut(&MailImportReport),
) -> Result<MailImportReport> {
    let source = path.canonicalize().map_err(io(path))?;
    let mut reader = MboxReader::open(&source)?;
    let mailbox = vault.find_or_create_mailbox(mailbox_path)?;
    let mut run = ImportRun::new(vault, progress);
    let mut seen: HashMap<[u8; 32], u64> = HashMap::new();
    while let Some(message) = reader.next_message()? {
        if is_too_large(message.size) {
            let reason = Error::MessageTooLarge { bytes: message.size }.to_string();
            run.refuse(path, Some(reader.number), reason);
            continue;
        }
        let digest = digest(&message.bytes);
        let before = seen.entry(digest).or_default();
        let (source, occurrence) = (source.as_os_str().as_encoded_bytes(), before.to_be_bytes());
        let item = item(&[b"mbox", source, &mailbox.0.to_be_bytes(), &digest, &occurrence]);
        *before += 1;
        if vault.is_imported(&item)? {
            run.count_known(message.size);
            continue;
        }
        let header = HeaderFields::parse(header_of(&message.bytes));
        let received_s = message.received_s.or_else(|| header.sent_s()).unwrap_or(0);
        let flags = flags(&message.bytes);
        run.add(mailbox, SourceMessage { bytes: message.bytes, item, flags, received_s })?;
    }
    run.store(mailbox)?;
    Ok(run.report)
}

/// A message of an mbox.
struct MboxMessage {
    /// The message; not all of it if it is too large.
    bytes: Vec<u8>,
    size: u64,
    /// The time in the `From ` line, in seconds since 1970. `None` if it cannot be read.
    received_s: Option<i64>,
}

struct MboxReader<'p> {
    file: BufReader<File>,
    path: &'p Path,
    /// The `From ` line of the next message; empty at the end of the file.
    from_line: Vec<u8>,
    /// The number of the last message that was read, from 1.
    number: u64,
}

impl<'p> MboxReader<'p> {
    fn open(path: &'p Path) -> Result<Self> {
        let file = BufReader::new(File::open(path).map_err(io(path))?);
        let mut reader = Self { file, path, from_line: Vec::new(), number: 0 };
        let mut line = Vec::new();
        reader.read_line(&mut line)?;
        if !line.is_empty() && !line.starts_with(b"From ") {
            return Err(Error::NotAnMbox { path: path.to_owned() });
        }
        reader.from_line = line;
        Ok(reader)
    }

    fn next_message(&mut self) -> Result<Option<MboxMessage>> {
        if self.from_line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let mut line = std::mem::take(&mut self.from_line);
        let received_s = from_line_time(&line);
        let (mut bytes, mut size) = (Vec::new(), 0_u64);
        let mut is_line_start = line.ends_with(b"\n");
        let mut is_after_empty = true;
        while self.read_line(&mut line)? {
            if is_line_start && is_from_line(&line, is_after_empty) {
                self.from_line = std::mem::take(&mut line);
                break;
            }
            let unquoted = if is_line_start { unquote(&line) } else { &line };
            size += unquoted.len() as u64;
            if size <= UNTRIMMED_BYTES_MAX {
                bytes.extend_from_slice(unquoted);
            }
            is_after_empty = is_line_start && is_empty_line(&line);
            is_line_start = line.ends_with(b"\n");
        }
        if size <= UNTRIMMED_BYTES_MAX {
            if is_after_empty && let Some(rest) = bytes.strip_suffix(b"\n") {
                bytes.truncate(rest.strip_suffix(b"\r").unwrap_or(rest).len());
            }
            size = bytes.len() as u64;
        }
        Ok(Some(MboxMessage { bytes, size, received_s }))
    }

    /// Reads a line, or the next part of one that is very long. Returns whether there was one.
    fn read_line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let mut limited = self.file.by_ref().take(MESSAGE_BYTES_MAX as u64);
        Ok(limited.read_until(b'\n', line).map_err(io(self.path))? > 0)
    }
}

/// Removes one `>` from a line that was quoted.
fn unquote(line: &[u8]) -> &[u8] {
    let Some(rest) = line.strip_prefix(b">") else { return line };
    let quoted = rest.iter().position(|byte| *byte != b'>').unwrap_or(rest.len());
    if rest[quoted..].starts_with(b"From ") { rest } else { line }
}

/// Whether a line begins a message.
fn is_from_line(line: &[u8], is_after_empty: bool) -> bool {
    line.starts_with(b"From ") && (is_after_empty || from_line_time(line).is_some())
}

fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

/// Reads the time from a line such as `From ada@example.org Sun Nov 29 04:00:00 2026`. It is in UTC
/// if no zone such as `+0100` comes after the time of day.
fn from_line_time(line: &[u8]) -> Option<i64> {
    let line = String::from_utf8_lossy(line.get(..line.len().min(FROM_LINE_BYTES_MAX))?);
    // The address can have spaces and colons.
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().rposition(|word| word.contains(':'))?;
    let ([.., month, day], [time, rest @ ..]) = words.split_at(at) else { return None };
    let year = rest.iter().find(|word| word.len() == 4)?;
    let zone_s = rest.iter().find_map(|word| zone_s(word)).unwrap_or(0);
    let format = format_description!(
        "[month repr:short] [day padding:none] [hour]:[minute]:[second] [year]"
    );
    let parsed = PrimitiveDateTime::parse(&format!("{month} {day} {time} {year}"), format).ok()?;
    Some(parsed.assume_utc().unix_timestamp() - zone_s)
}

/// Reads a zone such as `-0330`. Returns its seconds east of UTC.
fn zone_s(word: &str) -> Option<i64> {
    let digits = word.strip_prefix(['+', '-']).filter(|digits| digits.len() == 4)?;
    let number: i64 = digits.parse().ok()?;
    let seconds = (number / 100 * 60 + number % 100) * 60;
    Some(if word.starts_with('-') { -seconds } else { seconds })
}

/// Returns a hash of a message without the fields that mail programs change.
fn digest(message: &[u8]) -> [u8; 32] {
    let header = header_of(message);
    let mut hasher = Hasher::new();
    for line in header.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !CHANGING_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes())) {
            hasher.update(line);
        }
    }
    hasher.update(&message[header.len()..]);
    *hasher.finalize().as_bytes()
}

/// Returns the header of a message, up to its empty line.
fn header_of(message: &[u8]) -> &[u8] {
    let mut end = 0;
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if is_empty_line(line) {
            break;
        }
        end += line.len();
    }
    &message[..end]
}

fn flags(message: &[u8]) -> MessageFlags {
    let mut flags = MessageFlags::default();
    for line in header_of(message).split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let letters: &[(u8, &str)] = if name.eq_ignore_ascii_case(b"status") {
            &[(b'R', SEEN)]
        } else if name.eq_ignore_ascii_case(b"x-status") {
            &[(b'A', ANSWERED), (b'F', FLAGGED), (b'T', DRAFT), (b'D', DELETED)]
        } else {
            continue;
        };
        for (_, flag) in letters.iter().filter(|(letter, _)| value.contains(letter)) {
            flags.insert(flag);
        }
    }
    flags
}
