//! Stores every message that this device has created or received, in its wire format.
//!
//! # Invariants
//! - Each timestamp is in the log and in the fingerprint once, or in neither. Messages that are set
//!   aside, because the server rejects them, are only in the log: they are not compared.
//! - A message changes only while no server has it, or when all of them change
//!   (`message_log/rewrite.rs`).
//! - Contents are as on the wire, including sealed ones, because the fingerprint covers them.

mod message_state;
pub(crate) mod rewrite;
mod set_aside;
mod unsent;

use bytes::Bytes;
use crdt::{Change, Fingerprint, Message, Timestamp};
use protocol::ReconcileEntry;
use rusqlite::{Connection, OptionalExtension};

use self::message_state::{MERGED, REJECTED, SET_ASIDE, UNMERGED};
pub(crate) use self::rewrite::{
    AssumedServerState, change_form, reassign_node_of_unsent, retimestamp_unsent, rewrite_unsent,
};
pub(crate) use self::set_aside::{restore_all, set_aside, set_aside_count};
pub(crate) use self::unsent::{
    UnsentPage, fingerprint_of, forget_unsendable, has_unsent, mark_all_unsent, mark_unsent,
    sent_fingerprint, unsent_count,
};
use super::content_codec::{ContentCodec, RejectionReason};
use crate::capture::provisional_keys;
use crate::error::{Error, Result};
use crate::sql_value::timestamp;

/// The origin of a message in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageOrigin {
    /// This device created the message; the row states include it already.
    Local,
    /// The server sent the message; it waits to be merged.
    Remote,
}

/// The result of appending a received message.
pub(crate) enum AppendOutcome {
    New,
    Duplicate,
    /// The timestamp is known with another content.
    TimestampReused,
    /// The timestamp is known, and the received content cannot be decoded.
    Rejected(RejectionReason),
    /// The message is known, and less is left of it than this file had.
    Erased(ErasedMessage),
}

/// The maximum number of messages in memory together, and of their content bytes.
const BATCH_COUNT_MAX: usize = 10_000;
const BATCH_BYTES_MAX: usize = 8 << 20;

/// The log, opened for changes. Contents are sealed and unsealed with the key of the file's
/// recovery phrase.
pub(crate) struct MessageLog<'a> {
    pub(crate) db: &'a Connection,
    codec: ContentCodec,
}

impl<'a> MessageLog<'a> {
    pub(crate) fn open(db: &'a Connection) -> Result<Self> {
        Ok(Self { db, codec: ContentCodec::load(db)? })
    }

    /// Adds a local change. The caller must update the row state.
    pub(crate) fn add_local(
        &self,
        timestamp: Timestamp,
        change: &Change,
        total: &mut Fingerprint,
    ) -> Result<()> {
        let message = self.codec.encode(timestamp, change);
        if insert(self.db, &message, MessageOrigin::Local, total)? {
            return Ok(());
        }
        let reason = "this device used its timestamp twice".into();
        Err(Error::CorruptMessage { timestamp: timestamp.to_string(), reason })
    }

    /// Adds a message of the server, unchanged.
    pub(crate) fn add_remote(
        &self,
        message: &Message,
        total: &mut Fingerprint,
    ) -> Result<AppendOutcome> {
        if insert(self.db, message, MessageOrigin::Remote, total)? {
            return Ok(AppendOutcome::New);
        }
        set_aside::restore_message(self.db, message.timestamp, total)?;
        let known = content(self.db, message.timestamp)?.unwrap_or_default();
        if known == message.content {
            mark_sent(self.db, message.timestamp)?;
            return Ok(AppendOutcome::Duplicate);
        }
        // If both contents can be decoded, two devices created one each, unless something was
        // erased from one. A content that cannot be decoded comes from a server and yields to the
        // valid one.
        let known = Message { timestamp: message.timestamp, content: known.into() };
        let has_key = self.codec.has_key();
        match (self.codec.decode(message), self.codec.decode(&known)) {
            (Ok(theirs), Ok(ours)) => self.meet((message, theirs), (&known, ours), total),
            (Ok(theirs), Err(_)) if has_key || theirs == Change::Erased => {
                self.replace(&known, message, total)?;
                let sql = format!(
                    "UPDATE warren_message SET merge_state = {UNMERGED} WHERE timestamp = ?1"
                );
                self.db.prepare_cached(&sql)?.execute([message.timestamp.to_bytes()])?;
                let (timestamp, is_whole) = (message.timestamp, theirs == Change::Erased);
                let erased = ErasedMessage { timestamp, before: Change::Erased, is_whole };
                Ok(if is_whole { AppendOutcome::Erased(erased) } else { AppendOutcome::New })
            }
            (Err(refusal), _) if has_key => {
                // The server has a content for this timestamp and would reject another one.
                mark_sent(self.db, message.timestamp)?;
                Ok(AppendOutcome::Rejected(refusal))
            }
            _ => Ok(AppendOutcome::TimestampReused),
        }
    }

    /// Handles two readable contents of one message: something was erased from one or both, or they
    /// belong to different messages with one timestamp.
    fn meet(
        &self,
        (theirs, their_change): (&Message, Change),
        (ours, our_change): (&Message, Change),
        total: &mut Fingerprint,
    ) -> Result<AppendOutcome> {
        let timestamp = ours.timestamp;
        let Some(rest) = our_change.common_rest(&their_change) else {
            return Ok(AppendOutcome::TimestampReused);
        };
        let (is_theirs, is_ours) = (rest == their_change, rest == our_change);
        if is_theirs && is_ours {
            return Ok(AppendOutcome::TimestampReused);
        }
        if is_theirs {
            self.replace(ours, theirs, total)?;
        } else {
            self.replace(ours, &self.encode(timestamp, &rest), total)?;
            let sql = "INSERT OR REPLACE INTO warren_unerased VALUES (?1, ?2)";
            let hash = Fingerprint::from_message(timestamp, &theirs.content).digest_bytes();
            self.db.prepare_cached(sql)?.execute((timestamp.to_bytes(), hash))?;
        }
        if is_ours {
            return Ok(AppendOutcome::Duplicate);
        }
        let is_whole = rest == Change::Erased;
        Ok(AppendOutcome::Erased(ErasedMessage { timestamp, before: our_change, is_whole }))
    }

    /// Replaces a message's content by the server's, or by one with less left than the server's.
    fn replace(&self, known: &Message, by: &Message, total: &mut Fingerprint) -> Result<()> {
        let key = by.timestamp.to_bytes();
        let sql = "UPDATE warren_message SET content = ?2, sent = 1 WHERE timestamp = ?1";
        self.db.prepare_cached(sql)?.execute((key, &by.content[..]))?;
        let sql = "DELETE FROM warren_unerased WHERE timestamp = ?1";
        self.db.prepare_cached(sql)?.execute([key])?;
        *total -= Fingerprint::from_message(known.timestamp, &known.content);
        *total += Fingerprint::from_message(by.timestamp, &by.content);
        Ok(())
    }

    /// Encodes a change as a message.
    pub(crate) fn encode(&self, timestamp: Timestamp, change: &Change) -> Message {
        self.codec.encode(timestamp, change)
    }

    pub(crate) fn decode(&self, message: &Message) -> Result<Change, RejectionReason> {
        self.codec.decode(message)
    }

    /// Returns the change of a message that must be in the log.
    pub(crate) fn change(&self, timestamp: Timestamp) -> Result<Change> {
        let damaged = |reason: &str| Error::CorruptMessage {
            timestamp: timestamp.to_string(),
            reason: reason.into(),
        };
        let content = content(self.db, timestamp)?.ok_or_else(|| damaged("missing"))?;
        let message = Message { timestamp, content: content.into() };
        self.decode(&message).map_err(|source| damaged(&source.to_string()))
    }
}

impl MessageLog<'_> {
    /// Visits every merged change, in no particular order.
    pub(crate) fn for_each_change(
        &self,
        mut visit: impl FnMut(Timestamp, Change) -> Result<()>,
    ) -> Result<()> {
        let sql = "SELECT timestamp, content FROM warren_message WHERE merge_state = 1";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let timestamp = timestamp(row, 0)?;
            let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let message = Message { timestamp, content: Bytes::copy_from_slice(content) };
            let change = self.decode(&message).map_err(|source| Error::CorruptMessage {
                timestamp: timestamp.to_string(),
                reason: source.to_string(),
            })?;
            visit(timestamp, change)?;
        }
        Ok(())
    }
}

/// Inserts one message and adds its fingerprint. Returns false if its timestamp is known.
fn insert(
    db: &Connection,
    message: &Message,
    origin: MessageOrigin,
    total: &mut Fingerprint,
) -> Result<bool> {
    let remote = origin == MessageOrigin::Remote;
    let key = message.timestamp.to_bytes();
    let sql = "INSERT INTO warren_message (timestamp, sent, merge_state, content)
               VALUES (?1, ?2, ?3, ?4) ON CONFLICT (timestamp) DO NOTHING";
    let merge_state = if remote { UNMERGED } else { MERGED };
    let inserted =
        db.prepare_cached(sql)?.execute((&key, remote, merge_state, &message.content[..]))?;
    if inserted == 1 {
        *total += Fingerprint::from_message(message.timestamp, &message.content);
    }
    Ok(inserted == 1)
}

/// Returns the id of every message that is not set aside, and the fingerprint of all, computed from
/// the contents instead of recorded values.
pub(crate) fn entries(db: &Connection) -> Result<(Vec<ReconcileEntry>, Fingerprint)> {
    let sql = format!("SELECT timestamp, content FROM warren_message WHERE sent <> {SET_ASIDE}");
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let (mut items, mut total) = (Vec::new(), Fingerprint::default());
    while let Some(row) = rows.next()? {
        let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let timestamp = timestamp(row, 0)?;
        let fingerprint = Fingerprint::from_message(timestamp, content);
        items.push(ReconcileEntry { timestamp, id: fingerprint.short_digest() });
        total += fingerprint;
    }
    Ok((items, total))
}

pub(crate) fn content(db: &Connection, timestamp: Timestamp) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT content FROM warren_message WHERE timestamp = ?1";
    let key = timestamp.to_bytes();
    Ok(db.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

/// Returns whether a message waits to be merged.
pub(crate) fn has_unmerged(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_message WHERE merge_state = 0)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the oldest messages that wait to be merged.
pub(crate) fn unmerged_page(db: &Connection) -> Result<Vec<Message>> {
    page(db, "merge_state = 0", None, BATCH_COUNT_MAX, BATCH_BYTES_MAX)
}

/// Visits all messages that wait to be merged, in order of time.
pub(crate) fn for_each_unmerged(
    db: &Connection,
    mut visit: impl FnMut(&Message) -> Result<()>,
) -> Result<()> {
    let mut after = None;
    loop {
        let messages = page(db, "merge_state = 0", after, BATCH_COUNT_MAX, BATCH_BYTES_MAX)?;
        let Some(last) = messages.last() else { return Ok(()) };
        after = Some(last.timestamp);
        messages.iter().try_for_each(&mut visit)?;
    }
}

fn page(
    db: &Connection,
    which: &str,
    after: Option<Timestamp>,
    count_max: usize,
    bytes_max: usize,
) -> Result<Vec<Message>> {
    let sql = format!(
        "SELECT timestamp, content FROM warren_message
         WHERE {which} AND timestamp > ?1 ORDER BY timestamp LIMIT ?2"
    );
    // An empty blob sorts before every timestamp.
    let after = after.map(|after| after.to_bytes().to_vec()).unwrap_or_default();
    let mut statement = db.prepare_cached(&sql)?;
    let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
    let mut rows = statement.query((after, count_max))?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        bytes += content.len();
        if bytes > bytes_max && !page.is_empty() {
            break;
        }
        let content = Bytes::copy_from_slice(content);
        page.push(Message { timestamp: timestamp(row, 0)?, content });
    }
    Ok(page)
}

/// Marks every message up to `last`, the last one of an unmerged page, as merged. Nothing else
/// writes to the log between reading the page and this call: both are in one transaction.
pub(crate) fn mark_merged(db: &Connection, last: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_message SET merge_state = 1 WHERE merge_state = 0 AND timestamp <= ?1";
    db.prepare_cached(sql)?.execute([last.to_bytes()])?;
    Ok(())
}

/// Marks a waiting message as rejected.
pub(crate) fn mark_rejected(db: &Connection, timestamp: Timestamp) -> Result<()> {
    let sql = format!("UPDATE warren_message SET merge_state = {REJECTED} WHERE timestamp = ?1");
    db.prepare_cached(&sql)?.execute([timestamp.to_bytes()])?;
    Ok(())
}

/// Returns the rejected messages, oldest first.
pub(crate) fn refused(db: &Connection) -> Result<Vec<Timestamp>> {
    let sql = format!(
        "SELECT timestamp FROM warren_message WHERE merge_state = {REJECTED} ORDER BY timestamp"
    );
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut timestamps = Vec::new();
    while let Some(row) = rows.next()? {
        timestamps.push(timestamp(row, 0)?);
    }
    Ok(timestamps)
}

/// Returns the number of rejected messages.
pub(crate) fn rejected_count(db: &Connection) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM warren_message WHERE merge_state = {REJECTED}");
    let count: i64 = db.query_row(&sql, [], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Returns the distinct headers (version and key id) of sealed contents that wait to be merged.
pub(crate) fn unmerged_e2ee_headers(db: &Connection) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT DISTINCT substr(content, 1, 9) FROM warren_message
               WHERE merge_state = 0 AND substr(content, 1, 1) = x'02'";
    let mut statement = db.prepare_cached(sql)?;
    let heads = statement.query_map([], |row| row.get(0))?;
    Ok(heads.collect::<rusqlite::Result<_>>()?)
}

/// Returns whether one of the oldest messages that wait to be merged can be decoded.
pub(crate) fn can_decode_any_unmerged(db: &Connection, codec: &ContentCodec) -> Result<bool> {
    Ok(unmerged_page(db)?.iter().any(|message| codec.decode(message).is_ok()))
}

/// A message with less left than this file had.
pub(crate) struct ErasedMessage {
    pub(crate) timestamp: Timestamp,
    pub(crate) before: Change,
    /// Whether nothing is left of the message.
    pub(crate) is_whole: bool,
}

pub(crate) fn mark_sent(db: &Connection, timestamp: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_message SET sent = 1 WHERE timestamp = ?1 AND sent = 0";
    if db.prepare_cached(sql)?.execute([timestamp.to_bytes()])? > 0 {
        provisional_keys::remove_sent(db, timestamp)?;
    }
    Ok(())
}
