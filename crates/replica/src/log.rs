//! The log: every message that this device has made or received, as it is on the wire.
//!
//! # Invariants
//! - Each timestamp is in the log and in the fingerprint once, or in neither.
//! - A content never changes; a timestamp changes only while no server has it ([`rename_unsent`]).

use bytes::Bytes;
use crdt::{Change, Fingerprint, Message, Node, Timestamp};
use protocol::Item;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::{meta, state};

/// How a message came into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Made here; the state has it already.
    Local,
    /// From the server; to be merged.
    Remote,
}

/// What became of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    New,
    Known,
    /// The timestamp is known with another content.
    Conflict,
}

/// Adds one message; the caller adds its fingerprint to `total` if it was new.
pub(crate) fn add(
    db: &Connection,
    message: &Message,
    origin: Origin,
    total: &mut Fingerprint,
) -> Result<Kept> {
    let remote = origin == Origin::Remote;
    let key = message.timestamp.to_bytes();
    let sql = "INSERT INTO warren_message (timestamp, sent, merged, content)
               VALUES (?1, ?2, ?3, ?4) ON CONFLICT (timestamp) DO NOTHING";
    let inserted =
        db.prepare_cached(sql)?.execute((&key, remote, !remote, &message.content[..]))?;
    if inserted == 1 {
        *total += Fingerprint::of(message.timestamp, &message.content);
        return Ok(Kept::New);
    }
    if content(db, message.timestamp)?.as_deref() != Some(&message.content[..]) {
        return Ok(Kept::Conflict);
    }
    if remote {
        mark_sent(db, message.timestamp)?;
    }
    Ok(Kept::Known)
}

fn mark_sent(db: &Connection, timestamp: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_message SET sent = 1 WHERE timestamp = ?1 AND sent = 0";
    db.prepare_cached(sql)?.execute([timestamp.to_bytes()])?;
    Ok(())
}

/// Takes every message for unsent, so that a server that lost some gets them again.
pub(crate) fn mark_all_unsent(db: &Connection) -> Result<()> {
    db.execute("UPDATE warren_message SET sent = 0", [])?;
    Ok(())
}

/// Takes these messages for unsent: the server lacks them.
pub(crate) fn mark_unsent(db: &Connection, timestamps: &[Timestamp]) -> Result<()> {
    let sql = "UPDATE warren_message SET sent = 0 WHERE timestamp = ?1";
    let mut statement = db.prepare_cached(sql)?;
    for timestamp in timestamps {
        statement.execute([timestamp.to_bytes()])?;
    }
    Ok(())
}

/// Every message's identity, and the fingerprint of all: computed from the contents, whatever is
/// recorded.
pub(crate) fn items(db: &Connection) -> Result<(Vec<Item>, Fingerprint)> {
    let mut statement = db.prepare_cached("SELECT timestamp, content FROM warren_message")?;
    let mut rows = statement.query([])?;
    let (mut items, mut total) = (Vec::new(), Fingerprint::default());
    while let Some(row) = rows.next()? {
        let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let timestamp = timestamp(row, 0)?;
        let fingerprint = Fingerprint::of(timestamp, content);
        items.push(Item { timestamp, id: fingerprint.short() });
        total += fingerprint;
    }
    Ok((items, total))
}

pub(crate) fn content(db: &Connection, timestamp: Timestamp) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT content FROM warren_message WHERE timestamp = ?1";
    let key = timestamp.to_bytes();
    Ok(db.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

/// The change of a message that is known to be in the log.
pub(crate) fn change(db: &Connection, timestamp: Timestamp) -> Result<Change> {
    let damaged = |why: &str| Error::Damaged { timestamp: timestamp.to_string(), why: why.into() };
    let content = content(db, timestamp)?.ok_or_else(|| damaged("missing"))?;
    Change::decode(&content).map_err(|source| damaged(&source.to_string()))
}

pub(crate) fn unsent_count(db: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM warren_message WHERE sent = 0";
    let count: i64 = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Whether there is a message that the server has not acknowledged.
pub(crate) fn is_unsent(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_message WHERE sent = 0)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// The oldest unsent messages.
pub(crate) struct UnsentPage {
    pub(crate) messages: Vec<Message>,
    /// The newest row of the log when the page was read: what came later is not in it.
    id_max: i64,
}

impl UnsentPage {
    /// Up to `count_max` messages and about `bytes_max` of content.
    pub(crate) fn read(db: &Connection, count_max: usize, bytes_max: usize) -> Result<Self> {
        let sql = "SELECT coalesce(max(id), 0) FROM warren_message";
        let id_max = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(Self { messages: page(db, "sent = 0", count_max, bytes_max)?, id_max })
    }

    /// The server has them.
    pub(crate) fn mark_sent(&self, db: &Connection) -> Result<()> {
        let Some(last) = self.messages.last() else { return Ok(()) };
        let sql =
            "UPDATE warren_message SET sent = 1 WHERE sent = 0 AND timestamp <= ?1 AND id <= ?2";
        db.prepare_cached(sql)?.execute((last.timestamp.to_bytes(), self.id_max))?;
        Ok(())
    }
}

/// The oldest messages that the state does not have yet.
pub(crate) fn unmerged_page(db: &Connection, count_max: usize) -> Result<Vec<Message>> {
    page(db, "merged = 0", count_max, usize::MAX)
}

fn page(db: &Connection, which: &str, count_max: usize, bytes_max: usize) -> Result<Vec<Message>> {
    let sql = format!(
        "SELECT timestamp, content FROM warren_message WHERE {which} ORDER BY timestamp LIMIT ?1"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([i64::try_from(count_max).unwrap_or(i64::MAX)])?;
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

pub(crate) fn timestamp(row: &rusqlite::Row<'_>, column: usize) -> Result<Timestamp> {
    let bytes = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    Timestamp::from_bytes(bytes).map_err(|source| Error::Damaged {
        timestamp: format!("{bytes:02x?}"),
        why: source.to_string(),
    })
}

/// Notes that the state has every message up to `last`, the last one of an unmerged page. Nothing
/// else writes to the log between reading the page and this: it is one transaction.
pub(crate) fn mark_merged(db: &Connection, last: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_message SET merged = 1 WHERE merged = 0 AND timestamp <= ?1";
    db.prepare_cached(sql)?.execute([last.to_bytes()])?;
    Ok(())
}

/// Gives the unsent messages of node `old` the name of node `new`: the moment stays, the identity
/// changes.
///
/// For a device that finds that it shares its node id with another, as copies of one file do.
pub(crate) fn rename_unsent(db: &Connection, old: Node, new: Node) -> Result<()> {
    let mut total = meta::fingerprint(db)?;
    let sql = "UPDATE warren_message SET timestamp = ?2 WHERE timestamp = ?1";
    let mut update = db.prepare_cached(sql)?;
    let unsent = page(db, "sent = 0", usize::MAX, usize::MAX)?;
    for message in unsent.iter().filter(|message| message.timestamp.node() == old) {
        let (before, after) = (message.timestamp, message.timestamp.with_node(new));
        update.execute((before.to_bytes(), after.to_bytes()))?;
        total -= Fingerprint::of(before, &message.content);
        total += Fingerprint::of(after, &message.content);
        state::rename(db, &message.content, before, after)?;
    }
    meta::set_fingerprint(db, &total)
}
