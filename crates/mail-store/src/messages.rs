//! Messages in mailboxes: storing, listing and reading them.
//!
//! # Invariants
//! - A UID of a mailbox is given once. `mailbox.uid_next` ascends in the transaction that uses it.
//! - Counts and sizes of a mailbox change in the transaction that changes its messages.

use engine::{StaticStatement, Transaction};
use rusqlite::{OptionalExtension, Row as SqlRow, params};

use crate::content;
use crate::error::{Error, Result};
use crate::limits::{HEADER_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::mailboxes::MailboxId;
use crate::message_flags::{self, MessageFlags, SEEN};
use crate::part_tree::PartTree;
use crate::prepared_message::PreparedMessage;

/// The time at which a message arrived: IMAP's INTERNALDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedTime {
    /// Seconds since 1970.
    pub unix_s: i64,
    /// The zone in which the time is shown, in minutes east of UTC.
    pub zone_min: i16,
}

/// A message to be stored in a mailbox.
pub struct NewMessage {
    pub message: PreparedMessage,
    pub flags: MessageFlags,
    pub received: ReceivedTime,
    /// Identifies the message in the source of an import. It is not stored again from there.
    pub imported_item: Option<[u8; 32]>,
}

/// A message in a mailbox, as a listing shows it.
#[derive(Clone, Debug)]
pub struct MailboxEntry {
    pub uid: u32,
    pub flags: MessageFlags,
    /// The size of the message in bytes.
    pub size: u64,
    pub received: ReceivedTime,
    /// The time in the header field `Date`, in seconds since 1970.
    pub sent_s: Option<i64>,
    pub has_attachment: bool,
    /// The header of the message, at most 256 KiB of it.
    pub header: Vec<u8>,
}

/// A whole message.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    pub entry: MailboxEntry,
    /// The message, byte for byte as it was stored.
    pub bytes: Vec<u8>,
    pub parts: PartTree,
}

/// Stores messages in a mailbox, without those that were imported before. Returns how many were
/// stored.
pub(crate) fn store(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    messages: &[NewMessage],
    now_ms: u64,
) -> Result<u32> {
    let mut new = Vec::with_capacity(messages.len());
    for message in messages {
        if is_new(db, message)? {
            new.push(message);
        }
    }
    store_new(db, mailbox, &new, now_ms)
}

/// Stores messages in a mailbox. Returns how many there are.
pub(crate) fn store_new(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    new: &[&NewMessage],
    now_ms: u64,
) -> Result<u32> {
    let Some(count) = u32::try_from(new.len()).ok().filter(|count| *count > 0) else {
        return Ok(0);
    };
    let numbers = take_numbers(db, mailbox, new, count)?;
    for ((message, uid), id) in new.iter().zip(numbers.first_uid..).zip(numbers.first_message..) {
        insert_message(db, id, message)?;
        insert_entry(db, (mailbox, uid, id), message, numbers.modseq, now_ms)?;
    }
    Ok(count)
}

fn is_new(db: &Transaction<'_>, message: &NewMessage) -> Result<bool> {
    static INSERT: StaticStatement =
        StaticStatement::new("INSERT INTO imported (item) VALUES (?1) ON CONFLICT DO NOTHING");
    let Some(item) = &message.imported_item else { return Ok(true) };
    Ok(db.statement(&INSERT)?.execute([&item[..]])? == 1)
}

/// Whether a message of an import was stored before.
pub(crate) fn is_imported(db: &Transaction<'_>, item: &[u8; 32]) -> Result<bool> {
    static FIND: StaticStatement = StaticStatement::new("SELECT 1 FROM imported WHERE item = ?1");
    Ok(db.statement(&FIND)?.exists([&item[..]])?)
}

/// The numbers that a transaction takes for its messages.
struct TakenNumbers {
    modseq: i64,
    first_message: i64,
    first_uid: u32,
}

fn take_numbers(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    messages: &[&NewMessage],
    count: u32,
) -> Result<TakenNumbers> {
    static STATE: StaticStatement = StaticStatement::new(
        "UPDATE mail_state SET modseq = modseq + 1, last_message_id = last_message_id + ?1
         RETURNING modseq, last_message_id - ?1 + 1",
    );
    static MAILBOX: StaticStatement = StaticStatement::new(
        "UPDATE mailbox SET uid_next = uid_next + ?2, modseq = ?3,
             messages_count = messages_count + ?2, unseen_count = unseen_count + ?4,
             messages_bytes = messages_bytes + ?5
         WHERE id = ?1 AND uid_next + ?2 <= 0xffffffff RETURNING uid_next - ?2",
    );
    let (modseq, first_message) =
        db.statement(&STATE)?.query_row([count], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let unseen_count = messages.iter().filter(|message| !message.flags.has(SEEN)).count();
    let bytes: usize = messages.iter().map(|message| message.message.size).sum();
    let (unseen_count, bytes) = (to_column(unseen_count), to_column(bytes));
    let columns = params![mailbox.0, count, modseq, unseen_count, bytes];
    let first_uid = db.statement(&MAILBOX)?.query_row(columns, |row| row.get(0)).optional()?;
    let first_uid = first_uid.ok_or(Error::UidsUsedUp { mailbox: mailbox.0 })?;
    Ok(TakenNumbers { modseq, first_message, first_uid })
}

fn insert_message(db: &Transaction<'_>, id: i64, new: &NewMessage) -> Result<()> {
    static MESSAGE: StaticStatement = StaticStatement::new(
        "INSERT INTO message (id, entries_count, size, received_s, received_zone_min, sent_s,
             has_attachment, content_id, parts, headers)
         VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    );
    static SEGMENT: StaticStatement = StaticStatement::new(
        "INSERT INTO segment (message_id, position, content_id) VALUES (?1, ?2, ?3)",
    );
    let message = &new.message;
    let content_id = match message.segments.as_slice() {
        [only] => Some(content::store(db, only)?),
        segments => {
            for segment in segments {
                let content_id = content::store(db, segment)?;
                let columns = (id, to_column(segment.position), content_id);
                db.statement(&SEGMENT)?.execute(columns)?;
            }
            None
        }
    };
    db.statement(&MESSAGE)?.execute(params![
        id,
        to_column(message.size),
        new.received.unix_s,
        new.received.zone_min,
        message.sent_s,
        message.has_attachment,
        content_id,
        message.parts,
        message.headers
    ])?;
    Ok(())
}

fn insert_entry(
    db: &Transaction<'_>,
    (mailbox, uid, id): (MailboxId, u32, i64),
    new: &NewMessage,
    modseq: i64,
    now_ms: u64,
) -> Result<()> {
    static ENTRY: StaticStatement = StaticStatement::new(
        "INSERT INTO entry (mailbox_id, uid, message_id, flags, modseq, saved_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    );
    let flags = new.flags.to_bits(db)?;
    let columns = params![mailbox.0, uid, id, flags, modseq, now_ms.cast_signed()];
    db.statement(&ENTRY)?.execute(columns)?;
    Ok(())
}

/// Returns up to `count` messages of a mailbox with UIDs below `before`, the newest first.
pub(crate) fn list(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    before: u32,
    count: u32,
) -> Result<Vec<MailboxEntry>> {
    static LIST: StaticStatement = StaticStatement::new(
        "SELECT uid, flags, size, received_s, received_zone_min, sent_s, has_attachment, headers
         FROM entry JOIN message ON message.id = message_id
         WHERE mailbox_id = ?1 AND uid < ?2 ORDER BY uid DESC LIMIT ?3",
    );
    let keywords = message_flags::keywords(db)?;
    let mut statement = db.statement(&LIST)?;
    let rows = statement
        .query_and_then((mailbox.0, before, count), |row| entry_from_row(row, &keywords, 7))?;
    rows.collect()
}

/// Returns up to `count` UIDs of a mailbox above `after`, in their order.
pub(crate) fn uids(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    after: u32,
    count: u32,
) -> Result<Vec<u32>> {
    static UIDS: StaticStatement = StaticStatement::new(
        "SELECT uid FROM entry WHERE mailbox_id = ?1 AND uid > ?2 ORDER BY uid LIMIT ?3",
    );
    let mut statement = db.statement(&UIDS)?;
    let rows = statement.query_map((mailbox.0, after, count), |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns a whole message, or `None` if the mailbox has no such UID.
pub(crate) fn read(
    db: &Transaction<'_>,
    mailbox: MailboxId,
    uid: u32,
) -> Result<Option<StoredMessage>> {
    static READ: StaticStatement = StaticStatement::new(
        "SELECT uid, flags, size, received_s, received_zone_min, sent_s, has_attachment,
             message.id, content_id, parts, headers
         FROM entry JOIN message ON message.id = message_id WHERE mailbox_id = ?1 AND uid = ?2",
    );
    let keywords = message_flags::keywords(db)?;
    let mut statement = db.statement(&READ)?;
    let mut rows = statement.query((mailbox.0, uid))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let entry = entry_from_row(row, &keywords, 10)?;
    let (id, content_id, parts): (i64, Option<i64>, Vec<u8>) =
        (row.get(7)?, row.get(8)?, row.get(9)?);
    let size = usize::try_from(entry.size).ok().filter(|size| *size <= MESSAGE_BYTES_MAX);
    let size = size.ok_or(Error::Damaged { what: "the size of a message" })?;
    let bytes = match content_id {
        Some(content_id) => content::read(db, content_id)?,
        None => read_segments(db, id, size)?,
    };
    if bytes.len() != size {
        return Err(Error::Damaged { what: "the content of a message" });
    }
    let parts = PartTree::from_bytes(&parts, size)?;
    Ok(Some(StoredMessage { entry, bytes, parts }))
}

fn read_segments(db: &Transaction<'_>, id: i64, size: usize) -> Result<Vec<u8>> {
    static SEGMENTS: StaticStatement = StaticStatement::new(
        "SELECT position, content_id FROM segment WHERE message_id = ?1 ORDER BY position",
    );
    let mut bytes = Vec::with_capacity(size);
    let mut statement = db.statement(&SEGMENTS)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (position, content_id): (i64, i64) = (row.get(0)?, row.get(1)?);
        if position != to_column(bytes.len()) || bytes.len() > size {
            return Err(Error::Damaged { what: "the segments of a message" });
        }
        bytes.extend_from_slice(&content::read(db, content_id)?);
    }
    Ok(bytes)
}

fn entry_from_row(
    row: &SqlRow<'_>,
    keywords: &[(u32, String)],
    headers_column: usize,
) -> Result<MailboxEntry> {
    let headers: Vec<u8> = row.get(headers_column)?;
    Ok(MailboxEntry {
        uid: row.get(0)?,
        flags: MessageFlags::from_bits(row.get(1)?, keywords),
        size: row.get::<_, i64>(2)?.cast_unsigned(),
        received: ReceivedTime { unix_s: row.get(3)?, zone_min: row.get(4)? },
        sent_s: row.get(5)?,
        has_attachment: row.get(6)?,
        header: content::decompress(&headers, HEADER_BYTES_MAX)?,
    })
}

/// Converts a length in memory to SQLite's integers.
fn to_column(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
