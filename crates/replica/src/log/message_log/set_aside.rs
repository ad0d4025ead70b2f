//! Sets messages aside whose timestamps the server rejects as invalid: they are not sent and do not
//! delay others. Their changes stay in this file.
//!
//! A server with another message set gets them again: another account or server, or the account
//! after it became end-to-end encrypted.

use crdt::{Fingerprint, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::message_state::{SET_ASIDE, UNSENT};
use crate::error::Result;
use crate::meta;
use crate::sql_value::timestamp;

/// The maximum number of messages that a file sets aside. If a server rejects more, the server is
/// at fault.
const SET_ASIDE_COUNT_MAX: u64 = 1_000;

/// Sets an unsent message aside. Returns `false` and changes nothing if too many are set aside.
pub(crate) fn set_aside(db: &Connection, timestamp: Timestamp) -> Result<bool> {
    if set_aside_count(db)? >= SET_ASIDE_COUNT_MAX {
        return Ok(false);
    }
    let mut total = meta::fingerprint(db)?;
    total -= mark(db, timestamp, UNSENT, SET_ASIDE)?;
    meta::set_fingerprint(db, &total)?;
    Ok(true)
}

/// Changes `sent` of a message from one state to another. Returns its fingerprint, or the empty one
/// if the message was not in the first state.
fn mark(db: &Connection, timestamp: Timestamp, from: i64, to: i64) -> Result<Fingerprint> {
    let sql =
        "UPDATE warren_message SET sent = ?3 WHERE timestamp = ?1 AND sent = ?2 RETURNING content";
    let mut statement = db.prepare_cached(sql)?;
    let key = (timestamp.to_bytes(), from, to);
    let content = statement.query_row(key, |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(content.map(|content| Fingerprint::from_message(timestamp, &content)).unwrap_or_default())
}

/// Returns the number of messages that are set aside.
pub(crate) fn set_aside_count(db: &Connection) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM warren_message WHERE sent = {SET_ASIDE}");
    let count: i64 = db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Makes a message unsent if it is set aside, because a server has one with its timestamp.
pub(super) fn restore_message(
    db: &Connection,
    timestamp: Timestamp,
    total: &mut Fingerprint,
) -> Result<()> {
    *total += mark(db, timestamp, SET_ASIDE, UNSENT)?;
    Ok(())
}

/// Makes all messages that are set aside unsent.
pub(crate) fn restore_all(db: &Connection) -> Result<()> {
    let sql = format!(
        "UPDATE warren_message SET sent = 0 WHERE sent = {SET_ASIDE} RETURNING timestamp, content"
    );
    let mut total = meta::fingerprint(db)?;
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let content = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        total += Fingerprint::from_message(timestamp(row, 0)?, content);
    }
    meta::set_fingerprint(db, &total)
}
