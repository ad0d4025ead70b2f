//! New rows whose keys SQLite counted: until the server has one, another device may give the same
//! key to a row of its own.
//!
//! # Not here
//! - What tells a counted key from one that a program chose → `capture`.
//! - What becomes of a row whose key another device took → `renumber`.

use crdt::Timestamp;
use rusqlite::Connection;

use crate::error::Result;
use crate::log;
use crate::state::RowId;

pub(crate) fn note(db: &Connection, id: &RowId, timestamp: Timestamp) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO warren_counted VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute((id.table, &id.key, timestamp.to_bytes()))?;
    Ok(())
}

/// Whether there is such a row.
pub(crate) fn is_any(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_counted)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// The message that made the row, if it is one of them.
pub(crate) fn find(db: &Connection, id: &RowId) -> Result<Option<Timestamp>> {
    let sql = "SELECT timestamp FROM warren_counted WHERE table_id = ?1 AND key = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query((id.table, &id.key))?;
    rows.next()?.map(|row| log::timestamp(row, 0)).transpose()
}

/// The message that made a row has another name.
pub(crate) fn rename(db: &Connection, old: Timestamp, new: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_counted SET timestamp = ?2 WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute((old.to_bytes(), new.to_bytes()))?;
    Ok(())
}

/// The row has another key.
pub(crate) fn rekey(db: &Connection, old: &RowId, new: &RowId) -> Result<()> {
    let sql = "UPDATE warren_counted SET key = ?3 WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((old.table, &old.key, &new.key))?;
    Ok(())
}

/// Some messages up to this one were sent: the server has their rows' keys.
pub(crate) fn forget_sent(db: &Connection, last: Timestamp) -> Result<()> {
    let sql = "DELETE FROM warren_counted WHERE timestamp <= ?1 AND EXISTS (
                   SELECT 1 FROM warren_message m
                   WHERE m.timestamp = warren_counted.timestamp AND m.sent = 1)";
    db.prepare_cached(sql)?.execute([last.to_bytes()])?;
    Ok(())
}
