//! Tracks the messages that the server lacks, because it has not acknowledged or has lost them.

use crdt::{Fingerprint, Message, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::message_state::{MERGED, UNMERGED};
use super::{content, page, rewrite, set_aside};
use crate::capture::provisional_keys;
use crate::error::Result;
use crate::log::content_codec::ContentCodec;
use crate::log::rejected::RejectedMessages;
use crate::meta;
use crate::sql_value::timestamp;

/// Marks every message as unsent, as if the server had none. Messages that do not match the
/// account's encryption mode come from a server and are dropped.
pub(crate) fn mark_all_unsent(db: &Connection) -> Result<()> {
    set_aside::restore_all(db)?;
    rewrite::drop_unsendable(db)?;
    db.execute("UPDATE warren_message SET sent = 0", [])?;
    Ok(())
}

/// Returns the fingerprint of these messages with their contents in this file.
pub(crate) fn fingerprint_of(db: &Connection, timestamps: &[Timestamp]) -> Result<Fingerprint> {
    let mut total = Fingerprint::default();
    for timestamp in timestamps {
        if let Some(content) = content(db, *timestamp)? {
            total += Fingerprint::from_message(*timestamp, &content);
        }
    }
    Ok(total)
}

/// Marks these messages, which the server lacks, as unsent. Returns those that may not be sent.
pub(crate) fn mark_unsent(db: &Connection, timestamps: &[Timestamp]) -> Result<Vec<Timestamp>> {
    let codec = ContentCodec::load(db)?;
    let sql = "UPDATE warren_message SET sent = 0 WHERE timestamp = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let mut unsendable = Vec::new();
    for timestamp in timestamps {
        let Some(message) = message(db, *timestamp)? else { continue };
        if codec.open(&message).is_some() {
            statement.execute([timestamp.to_bytes()])?;
        } else {
            unsendable.push(*timestamp);
        }
    }
    Ok(unsendable)
}

/// Drops those of these unsendable messages that were never merged: they came from another server,
/// and this one lacks them. Messages that were not decoded yet are reported as rejected first.
pub(crate) fn forget_unsendable(
    db: &Connection,
    timestamps: &[Timestamp],
    refused: &mut RejectedMessages,
) -> Result<()> {
    let codec = ContentCodec::load(db)?;
    let mut total = meta::fingerprint(db)?;
    let sql = format!(
        "DELETE FROM warren_message WHERE timestamp = ?1 AND merge_state <> {MERGED}
         RETURNING merge_state"
    );
    let mut statement = db.prepare_cached(&sql)?;
    for timestamp in timestamps {
        let Some(message) = message(db, *timestamp)? else { continue };
        let merge_state = statement.query_row([timestamp.to_bytes()], |row| row.get::<_, i64>(0));
        let Some(merge_state) = merge_state.optional()? else { continue };
        total -= Fingerprint::from_message(*timestamp, &message.content);
        if let Err(refusal) = codec.decode(&message)
            && merge_state == UNMERGED
        {
            refused.add(*timestamp, refusal);
        }
    }
    meta::set_fingerprint(db, &total)
}

fn message(db: &Connection, timestamp: Timestamp) -> Result<Option<Message>> {
    let content = content(db, timestamp)?;
    Ok(content.map(|content| Message { timestamp, content: content.into() }))
}

/// Returns the fingerprint of the messages that the server is known to have.
pub(crate) fn sent_fingerprint(db: &Connection) -> Result<Fingerprint> {
    let mut total = meta::fingerprint(db)?;
    let sql = "SELECT timestamp, content FROM warren_message WHERE sent = 0";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        total -= Fingerprint::from_message(timestamp(row, 0)?, content);
    }
    Ok(total)
}

pub(crate) fn unsent_count(db: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM warren_message WHERE sent = 0";
    let count: i64 = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Returns whether there is a message that the server has not acknowledged.
pub(crate) fn has_unsent(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_message WHERE sent = 0)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// The oldest unsent messages.
pub(crate) struct UnsentPage {
    pub(crate) messages: Vec<Message>,
    /// The newest row of the log when the page was read; later rows are not in the page.
    id_max: i64,
}

impl UnsentPage {
    /// Reads up to `count_max` messages and about `bytes_max` of content.
    pub(crate) fn read(db: &Connection, count_max: usize, bytes_max: usize) -> Result<Self> {
        let sql = "SELECT coalesce(max(id), 0) FROM warren_message";
        let id_max = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let messages = page(db, "sent = 0", None, count_max, bytes_max)?;
        Ok(Self { messages, id_max })
    }

    /// Marks the messages as sent, once the server has them.
    pub(crate) fn mark_sent(&self, db: &Connection) -> Result<()> {
        let Some(last) = self.messages.last() else { return Ok(()) };
        let sql =
            "UPDATE warren_message SET sent = 1 WHERE sent = 0 AND timestamp <= ?1 AND id <= ?2";
        db.prepare_cached(sql)?.execute((last.timestamp.to_bytes(), self.id_max))?;
        provisional_keys::remove_sent(db, last.timestamp)
    }
}
