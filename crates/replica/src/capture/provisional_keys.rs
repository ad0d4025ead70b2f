//! Records provisional keys: auto keys of new rows that the server does not have yet. Until it has
//! one, another device may assign the same key to a row of its own.
//!
//! # Not here
//! - Distinguishing auto keys from keys that a program chose → `capture`.
//! - Rows whose key another device has taken → `renumber`.

use crdt::{Timestamp, Value};
use rusqlite::{Connection, OptionalExtension};
use sqlite_schema::quote_identifier;

use crate::error::Result;
use crate::row_id::RowId;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value;

pub(crate) fn record(db: &Connection, id: &RowId, timestamp: Timestamp) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO warren_provisional_key VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute((id.table, &id.key, timestamp.to_bytes()))?;
    Ok(())
}

/// Returns whether any row has a provisional key.
pub(crate) fn is_any(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_provisional_key)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the message that inserted the row, if its key is provisional.
pub(crate) fn find(db: &Connection, id: &RowId) -> Result<Option<Timestamp>> {
    let sql = "SELECT timestamp FROM warren_provisional_key WHERE table_id = ?1 AND key = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query((id.table, &id.key))?;
    rows.next()?.map(|row| sql_value::timestamp(row, 0)).transpose()
}

/// Returns the row that the message inserted, if its key is provisional.
pub(crate) fn made_by(db: &Connection, timestamp: Timestamp) -> Result<Option<RowId>> {
    let sql = "SELECT table_id, key FROM warren_provisional_key WHERE timestamp = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let found = statement.query_row([timestamp.to_bytes()], |row| {
        Ok(RowId { table: row.get(0)?, key: row.get(1)? })
    });
    Ok(found.optional()?)
}

/// Replaces the timestamp of the message that inserted a row.
pub(crate) fn replace_timestamp(db: &Connection, old: Timestamp, new: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_provisional_key SET timestamp = ?2 WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute((old.to_bytes(), new.to_bytes()))?;
    Ok(())
}

/// Replaces the key of a row.
pub(crate) fn update_key(db: &Connection, old: &RowId, new: &RowId) -> Result<()> {
    let sql = "UPDATE warren_provisional_key SET key = ?3 WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((old.table, &old.key, &new.key))?;
    Ok(())
}

/// Removes a row that belongs to another device, too.
pub(crate) fn forget(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "DELETE FROM warren_provisional_key WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Removes the rows whose messages, up to this one, were sent: the server has their keys.
pub(crate) fn remove_sent(db: &Connection, last: Timestamp) -> Result<()> {
    let sql = "DELETE FROM warren_provisional_key WHERE timestamp <= ?1 AND EXISTS (
                   SELECT 1 FROM warren_message m
                   WHERE m.timestamp = warren_provisional_key.timestamp AND m.sent = 1)";
    db.prepare_cached(sql)?.execute([last.to_bytes()])?;
    Ok(())
}

/// A sequence of keys that no row of a table has or had.
pub(crate) struct FreeKeys {
    last: i64,
}

impl FreeKeys {
    /// Starts above `at_least` and above every key in the table and in the row states.
    pub(crate) fn above_all(db: &Connection, table: &TrackedTable, at_least: i64) -> Result<Self> {
        let sql = format!(
            "SELECT max({}) FROM {}",
            quote_identifier(&table.key[0]),
            quote_identifier(&table.name)
        );
        let shown: Option<i64> = db.query_row(&sql, [], |row| row.get(0))?;
        let mut last = at_least.max(shown.unwrap_or(at_least));
        let mut statement = db.prepare("SELECT key FROM warren_row WHERE table_id = ?1")?;
        let mut rows = statement.query([table.id])?;
        while let Some(row) = rows.next()? {
            let id = RowId { table: table.id, key: row.get(0)? };
            if let [Value::Integer(number)] = id.key_values()?[..] {
                last = last.max(number);
            }
        }
        Ok(Self { last })
    }

    /// Returns the key that was drawn last; no row has a greater one.
    pub(crate) fn last(&self) -> i64 {
        self.last
    }

    /// Draws the next key, or returns `None` after the largest integer.
    pub(crate) fn draw(&mut self) -> Option<i64> {
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }
}

/// Makes SQLite choose keys above this one from now on, if the table is `AUTOINCREMENT`.
pub(crate) fn raise_sequence(db: &Connection, table: &TrackedTable, key: i64) -> Result<()> {
    if !table.autoincrement {
        return Ok(());
    }
    let sql = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
    if db.prepare_cached(sql)?.execute((&table.name, key))? == 0 {
        let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, max(?2, 0))";
        db.prepare_cached(sql)?.execute((&table.name, key))?;
    }
    Ok(())
}
