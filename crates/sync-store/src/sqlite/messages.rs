//! Stores, pages and finds a vault's messages.

use bytes::Bytes;
use crdt::{Message, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result, TIMESTAMPS_NAMED_MAX};
use crate::sqlite::rows::{blob, is_stale, summary, timestamp, write_summary};
use crate::sqlite::schema::to_column;
use crate::sqlite::{devices, loss, windows};
use crate::vault::batch::{BatchEntry, MessageBatch};
use crate::vault::device::DeviceActivity;
use crate::vault::{MessagePage, Quota, StoreOutcome, VaultSummary};

pub(super) fn store(
    db: &Connection,
    batch: &MessageBatch,
    quota: Quota,
    seen: Option<&DeviceActivity>,
) -> Result<StoreOutcome> {
    if is_stale(db)? {
        windows::rebuild(db)?;
    }
    let before = summary(db)?;
    if batch.expected_cursor.is_some_and(|after| before.cursor > after) {
        return Err(Error::StaleCursor);
    }
    let KnownMessages { sums: known, places, clashes } = insert_all(db, batch, before.cursor)?;
    if !clashes.is_empty() {
        return Err(Error::TimestampConflict { timestamps: clashes });
    }
    let after = add(db, batch, &known, before, quota)?;
    let new = after.cursor - before.cursor;
    if new > 0 {
        loss::record_returned(db, batch, &places)?;
    }
    if let Some(seen) = seen {
        let sent = batch.sum.count + batch.repeated;
        devices::record_push(db, seen, sent, before.cursor, after.cursor)?;
    }
    Ok(StoreOutcome { stored: new, known: known.sum.count + batch.repeated, after })
}

/// Records the summary and windows of the messages in `batch` that were not known.
pub(super) fn add(
    db: &Connection,
    batch: &MessageBatch,
    known: &MessageBatch,
    before: VaultSummary,
    quota: Quota,
) -> Result<VaultSummary> {
    let mut new = batch.sum;
    new -= known.sum;
    let mut after = before;
    if new.count > 0 {
        after.cursor += new.count;
        after.bytes += batch.bytes - known.bytes;
        after.fingerprint += new;
        check(after, quota)?;
        write_summary(db, after)?;
        windows::add(db, &batch.windows, &known.windows)?;
    }
    Ok(after)
}

pub(super) fn check(after: VaultSummary, quota: Quota) -> Result<()> {
    let (messages, bytes) = (after.fingerprint.count, after.bytes);
    for (what, limit, wanted) in
        [("messages", quota.messages_max, messages), ("bytes", quota.bytes_max, bytes)]
    {
        if wanted > limit {
            return Err(Error::QuotaExceeded { what, limit, wanted });
        }
    }
    Ok(())
}

/// The messages of a batch that were known already.
#[derive(Default)]
pub(super) struct KnownMessages {
    /// The sums of the known messages, without entries.
    pub(super) sums: MessageBatch,
    /// The places of the known messages in the batch, in order.
    pub(super) places: Vec<usize>,
    /// The timestamps of messages with another content: the first [`TIMESTAMPS_NAMED_MAX`].
    clashes: Vec<Timestamp>,
}

/// Inserts the new messages with the sequence numbers after `cursor`. Returns the known ones.
pub(super) fn insert_all(
    db: &Connection,
    batch: &MessageBatch,
    cursor: u64,
) -> Result<KnownMessages> {
    let mut insert = db.prepare_cached(
        "INSERT INTO message (seq, timestamp, hash, content) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (timestamp) DO NOTHING",
    )?;
    let mut find = db.prepare_cached("SELECT hash FROM message WHERE timestamp = ?1")?;
    let mut known = KnownMessages::default();
    let mut seq = to_column(cursor);
    for (place, entry) in batch.entries.iter().enumerate() {
        let BatchEntry { message: Message { timestamp, content }, fingerprint } = entry;
        insert.raw_bind_parameter(1, seq + 1)?;
        insert.raw_bind_parameter(2, &timestamp.to_bytes()[..])?;
        insert.raw_bind_parameter(3, &fingerprint.digest_bytes()[..])?;
        insert.raw_bind_parameter(4, &content[..])?;
        if insert.raw_execute()? == 1 {
            seq += 1;
            continue;
        }
        known.sums.add(entry);
        known.places.push(place);
        let hash: [u8; 16] = find.query_row([&timestamp.to_bytes()[..]], |row| row.get(0))?;
        if hash != fingerprint.digest_bytes() && known.clashes.len() < TIMESTAMPS_NAMED_MAX {
            known.clashes.push(*timestamp);
        }
    }
    Ok(known)
}

pub(super) fn page(
    db: &Connection,
    cursor: u64,
    count_max: usize,
    bytes_max: usize,
) -> Result<MessagePage> {
    let VaultSummary { cursor: newest, fingerprint, .. } = summary(db)?;
    let mut statement = db.prepare_cached(
        "SELECT seq, timestamp, content FROM message WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query((to_column(cursor), to_column(count_max as u64)))?;
    // One allocation holds all contents; the messages are slices of it.
    let mut contents = Vec::new();
    let mut ends = Vec::new();
    let mut last = newest;
    while let Some(row) = rows.next()? {
        last = row.get::<_, i64>(0)?.cast_unsigned();
        contents.extend_from_slice(blob(row, 2)?);
        ends.push((timestamp(row, 1)?, contents.len()));
        if contents.len() >= bytes_max {
            break;
        }
    }
    let (messages, more) = (slices(contents, &ends), last < newest);
    Ok(MessagePage { messages, cursor: last, more, fingerprint, loss: None })
}

/// Returns the timestamps of all messages, in order.
pub(super) fn timestamps(db: &Connection) -> Result<Vec<Timestamp>> {
    let mut statement = db.prepare("SELECT timestamp FROM message ORDER BY timestamp")?;
    let timestamps = statement.query_map([], |row| timestamp(row, 0))?;
    Ok(timestamps.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn slices(contents: Vec<u8>, ends: &[(Timestamp, usize)]) -> Vec<Message> {
    let contents = Bytes::from(contents);
    let mut start = 0;
    let slice = |&(timestamp, end): &(Timestamp, usize)| {
        let content = contents.slice(start..end);
        start = end;
        Message { timestamp, content }
    };
    ends.iter().map(slice).collect()
}

pub(super) fn find(
    db: &Connection,
    timestamps: &[Timestamp],
    bytes_max: usize,
) -> Result<Vec<Message>> {
    let mut statement = db.prepare_cached("SELECT content FROM message WHERE timestamp = ?1")?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for timestamp in timestamps {
        if bytes >= bytes_max {
            break;
        }
        let key = timestamp.to_bytes();
        let content: Option<Vec<u8>> =
            statement.query_row([&key[..]], |row| row.get(0)).optional()?;
        let Some(content) = content else { continue };
        bytes += content.len();
        messages.push(Message { timestamp: *timestamp, content: content.into() });
    }
    Ok(messages)
}
