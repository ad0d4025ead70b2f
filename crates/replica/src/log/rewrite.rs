//! Messages of the log that get another name, or are encoded anew.

use std::collections::{HashMap, HashSet};

use crdt::{Clock, DRIFT_MS_MAX, Fingerprint, Message, Node, Timestamp};
use rusqlite::Connection;

use super::{Log, REFUSED, TOGETHER_BYTES_MAX, TOGETHER_COUNT_MAX, WAITING, content, page};
use crate::codec::{Codec, Refusal};
use crate::error::{Error, Result};
use crate::{meta, state};

/// Gives the unsent messages of node `old` the name of node `new`: the moment stays, the identity
/// changes, and with it what a sealed content is bound to.
///
/// For a device that finds that it shares its node id with another, as copies of one file do.
pub(crate) fn rename_unsent(db: &Connection, old: Node, new: Node) -> Result<()> {
    let log = Log::open(db)?;
    rewrite(db, "sent = 0 AND merged = 1", |message| {
        let before = message.timestamp;
        if before.node() != old {
            return Ok(None);
        }
        let mut change = log.change(before)?;
        let after = before.with_node(new);
        // What it replaced is older, so if that was renamed, it has its new name by now.
        let mut renamed = HashSet::new();
        for seen in change.seen().filter(|seen| seen.node() == old) {
            if content(db, seen.with_node(new))?.is_some() {
                renamed.insert(seen);
            }
        }
        change.rename_seen(|seen| if renamed.contains(&seen) { seen.with_node(new) } else { seen });
        state::rename(db, &change, before, after)?;
        Ok(Some(log.codec.encode(after, &change)))
    })
}

/// Stamps again what is unsent and ahead of both sides: of the server's clock, and of all that it
/// has. The clock steps back to that.
pub(crate) fn restamp_unsent(db: &Connection, server_ms: u64) -> Result<()> {
    let log = Log::open(db)?;
    let node = meta::node(db)?;
    let accepted_ms = server_ms.saturating_add(DRIFT_MS_MAX);
    let newest = |which: &str, bound: Timestamp| -> Result<Option<Timestamp>> {
        let sql = format!("SELECT max(timestamp) FROM warren_message WHERE {which}");
        let bound = [bound.to_bytes()];
        let newest = db.query_row(&sql, bound, |row| row.get::<_, Option<Vec<u8>>>(0))?;
        Ok(newest.and_then(|bytes| Timestamp::from_bytes(&bytes).ok()))
    };
    // The vault takes what follows its newest message, however far ahead that is.
    let sent = newest("sent = 1 AND timestamp > ?1", Timestamp::ZERO)?;
    let bound_ms = accepted_ms.max(sent.map_or(0, Timestamp::millis)).min(Timestamp::MILLIS_MAX);
    let bound = Timestamp::new(bound_ms, u16::MAX, Node(u64::MAX)).expect("within the years");
    let last = newest("sent = 1 OR merged <> 1 OR timestamp <= ?1", bound)?;
    let mut clock = Clock::new(node, last.unwrap_or(Timestamp::ZERO));
    let mut renamed = HashMap::new();
    rewrite(db, "sent = 0 AND merged = 1", |message| {
        let before = message.timestamp;
        if before <= bound || before.node() != node {
            return Ok(None);
        }
        let mut change = log.change(before)?;
        let after = clock.send(server_ms);
        change.rename_seen(|seen| renamed.get(&seen).copied().unwrap_or(seen));
        state::rename(db, &change, before, after)?;
        renamed.insert(before, after);
        Ok(Some(log.codec.encode(after, &change)))
    })?;
    meta::set_clock(db, &clock)
}

/// Encodes every message anew that is a change, before another device has one of them in the new
/// form; what was refused waits to be looked at again.
pub(crate) fn encode_anew(db: &Connection, before: &Codec, after: &Codec) -> Result<()> {
    rewrite(db, "merged = 1", |message| {
        let damaged = |why: Refusal| Error::Damaged {
            timestamp: message.timestamp.to_string(),
            why: why.to_string(),
        };
        let change = before.decode(message).map_err(damaged)?;
        Ok(Some(after.encode(message.timestamp, &change)))
    })?;
    rewrite(db, "merged = 0", |message| {
        let change = before.decode(message).ok();
        Ok(change.map(|change| after.encode(message.timestamp, &change)))
    })?;
    let sql = format!("UPDATE warren_message SET merged = {WAITING} WHERE merged = {REFUSED}");
    db.execute(&sql, [])?;
    Ok(())
}

/// Replaces messages by others, keeping the fingerprint; in order of time.
fn rewrite(
    db: &Connection,
    which: &str,
    mut another: impl FnMut(&Message) -> Result<Option<Message>>,
) -> Result<()> {
    let mut total = meta::fingerprint(db)?;
    let sql = "UPDATE warren_message SET timestamp = ?2, content = ?3 WHERE timestamp = ?1";
    let mut update = db.prepare_cached(sql)?;
    let mut last = None;
    loop {
        let messages = page(db, which, last, TOGETHER_COUNT_MAX, TOGETHER_BYTES_MAX)?;
        let Some(newest) = messages.last() else { break };
        last = Some(newest.timestamp);
        for message in &messages {
            let Some(other) = another(message)? else { continue };
            let (before, after) = (message.timestamp.to_bytes(), other.timestamp.to_bytes());
            update.execute((before, after, &other.content[..]))?;
            total -= Fingerprint::of(message.timestamp, &message.content);
            total += Fingerprint::of(other.timestamp, &other.content);
        }
    }
    meta::set_fingerprint(db, &total)
}
