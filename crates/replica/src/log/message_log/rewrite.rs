//! Rewrites messages of the log with another timestamp or content.

use std::collections::{HashMap, HashSet};

use crdt::{Change, DRIFT_MS_MAX, Fingerprint, HybridLogicalClock, Message, NodeId, Timestamp};
use rusqlite::Connection;

use super::message_state::{REJECTED, UNMERGED};
use super::{BATCH_BYTES_MAX, BATCH_COUNT_MAX, MessageLog, content, page, set_aside};
use crate::error::Result;
use crate::log::content_codec::ContentCodec;
use crate::log::{message_log, replace_timestamp};
use crate::meta;

/// Replaces node id `old` of unsent messages by `new`. The hybrid time stays, the timestamp
/// changes, and with it the sealed content that is bound to it.
///
/// A device does this if it shares its node id with another device, as copies of one file do.
pub(crate) fn reassign_node_of_unsent(db: &Connection, old: NodeId, new: NodeId) -> Result<()> {
    let log = MessageLog::open(db)?;
    rewrite(db, "sent = 0 AND merge_state = 1", |message| {
        let before = message.timestamp;
        if before.node_id() != old {
            return Ok(RewriteAction::Keep);
        }
        let mut change = log.change(before)?;
        let after = before.with_node_id(new);
        // A replaced message is older, so if it was rewritten, it has its new timestamp by now.
        let mut renamed = HashSet::new();
        for seen in change.replaced().filter(|seen| seen.node_id() == old) {
            if content(db, seen.with_node_id(new))?.is_some() {
                renamed.insert(seen);
            }
        }
        change.map_replaced(
            |seen| if renamed.contains(&seen) { seen.with_node_id(new) } else { seen },
        );
        replace_timestamp::replace_timestamp(db, &change, before, after)?;
        Ok(RewriteAction::Replace(log.codec.encode(after, &change)))
    })
}

/// The messages that a server is assumed to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssumedServerState {
    /// The server holds all that are not unsent: the common case.
    HasAllSent,
    /// The server holds none ahead of its clock: another server had them, or this one lost them.
    HasNothingAhead,
}

/// Gives new timestamps to unsent messages that are ahead of the server's clock and of all that the
/// server holds. The file's clock steps back to those.
///
/// Changes of other devices are included, because the server rejects them from every device.
/// Messages that cannot be read here are removed: no device could have read them.
pub(crate) fn retimestamp_unsent(
    db: &Connection,
    server_ms: u64,
    holds: AssumedServerState,
) -> Result<()> {
    let log = MessageLog::open(db)?;
    let accepted_ms = server_ms.saturating_add(DRIFT_MS_MAX).min(Timestamp::MILLIS_MAX);
    let newest = |which: &str, bound: Timestamp| -> Result<Option<Timestamp>> {
        let sql = format!("SELECT max(timestamp) FROM warren_message WHERE {which}");
        let bound = [bound.to_bytes()];
        let newest = db.query_row(&sql, bound, |row| row.get::<_, Option<Vec<u8>>>(0))?;
        Ok(newest.and_then(|bytes| Timestamp::from_bytes(&bytes).ok()))
    };
    // The vault accepts what follows its newest message, however far ahead that is.
    let sent = match holds {
        AssumedServerState::HasAllSent => newest("sent = 1 AND timestamp > ?1", Timestamp::ZERO)?,
        AssumedServerState::HasNothingAhead => None,
    };
    let bound_ms = accepted_ms.max(sent.map_or(0, Timestamp::millis));
    let bound = Timestamp::new(bound_ms, u16::MAX, NodeId(u64::MAX)).expect("within the years");
    let last = newest("timestamp <= ?1", bound)?;
    let mut clock = HybridLogicalClock::new(meta::node_id(db)?, last.unwrap_or(Timestamp::ZERO));
    let mut renamed = HashMap::new();
    rewrite(db, "sent = 0", |message| {
        let before = message.timestamp;
        if before <= bound {
            return Ok(RewriteAction::Keep);
        }
        let Ok(mut change) = log.codec.decode(message) else { return Ok(RewriteAction::Remove) };
        let after = clock.next_timestamp(server_ms);
        change.map_replaced(|seen| renamed.get(&seen).copied().unwrap_or(seen));
        replace_timestamp::replace_timestamp(db, &change, before, after)?;
        renamed.insert(before, after);
        Ok(RewriteAction::Replace(log.codec.encode(after, &change)))
    })?;
    meta::set_clock(db, &clock)
}

/// Changes the content of this device's changes that no server has, under the same timestamps.
/// `another` returns whether it has changed one.
pub(crate) fn rewrite_unsent(
    db: &Connection,
    node: NodeId,
    mut another: impl FnMut(Timestamp, &mut Change) -> Result<bool>,
) -> Result<()> {
    let log = MessageLog::open(db)?;
    rewrite(db, "sent = 0 AND merge_state = 1", |message| {
        let timestamp = message.timestamp;
        if timestamp.node_id() != node {
            return Ok(RewriteAction::Keep);
        }
        let mut change = log.change(timestamp)?;
        let has_changed = another(timestamp, &mut change)?;
        Ok(if has_changed {
            RewriteAction::Replace(log.codec.encode(timestamp, &change))
        } else {
            RewriteAction::Keep
        })
    })
}

/// Encodes every message with another codec, before another device has one of them in that form.
/// Rejected messages are merged again.
pub(crate) fn change_form(
    db: &Connection,
    before: &ContentCodec,
    after: &ContentCodec,
) -> Result<()> {
    set_aside::restore_all(db)?;
    rewrite(db, "true", |message| {
        let content = before.open(message);
        let other = content.map(|content| after.seal(message.timestamp, content));
        Ok(match other {
            Some(other) if other != *message => RewriteAction::Replace(other),
            _ => RewriteAction::Keep,
        })
    })?;
    let sql = format!(
        "UPDATE warren_message SET merge_state = {UNMERGED} WHERE merge_state = {REJECTED}"
    );
    db.execute(&sql, [])?;
    Ok(())
}

/// Drops messages that were never merged here and may not be sent.
pub(super) fn drop_unsendable(db: &Connection) -> Result<()> {
    let codec = ContentCodec::load(db)?;
    rewrite(db, "merge_state <> 1", |message| {
        Ok(if codec.open(message).is_some() { RewriteAction::Keep } else { RewriteAction::Remove })
    })
}

/// The action for a message.
enum RewriteAction {
    Keep,
    Replace(Message),
    Remove,
}

/// Replaces or removes messages in order of time, and keeps the fingerprint correct.
fn rewrite(
    db: &Connection,
    which: &str,
    mut another: impl FnMut(&Message) -> Result<RewriteAction>,
) -> Result<()> {
    let mut total = meta::fingerprint(db)?;
    let sql = "UPDATE warren_message SET timestamp = ?2, content = ?3 WHERE timestamp = ?1";
    let mut update = db.prepare_cached(sql)?;
    let mut delete = db.prepare_cached("DELETE FROM warren_message WHERE timestamp = ?1")?;
    let mut last = None;
    loop {
        let messages = page(db, which, last, BATCH_COUNT_MAX, BATCH_BYTES_MAX)?;
        let Some(newest) = messages.last() else { break };
        last = Some(newest.timestamp);
        for message in &messages {
            let before = message.timestamp.to_bytes();
            match another(message)? {
                RewriteAction::Keep => continue,
                RewriteAction::Replace(other) => {
                    update.execute((before, other.timestamp.to_bytes(), &other.content[..]))?;
                    total += Fingerprint::from_message(other.timestamp, &other.content);
                }
                RewriteAction::Remove => {
                    delete.execute([before])?;
                }
            }
            total -= Fingerprint::from_message(message.timestamp, &message.content);
        }
    }
    meta::set_fingerprint(db, &total)
}

/// Draws another node id and uses it in the timestamps of unsent changes.
pub(crate) fn reassign_node_id(db: &Connection) -> Result<()> {
    let old = meta::node_id(db)?;
    let new = meta::draw_node_id(db)?;
    message_log::reassign_node_of_unsent(db, old, new)
}
