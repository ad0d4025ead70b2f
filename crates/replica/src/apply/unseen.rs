//! Records rows to which a device wrote without having seen its own newest change, for example from
//! two windows of one program. In other rows that only one device wrote to, no edit can be lost, so
//! the search for lost edits skips them.

use std::collections::HashSet;

use rusqlite::Connection;

use crate::error::Result;
use crate::row_id::RowId;

pub(crate) fn record_unseen(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO warren_unseen VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Returns all recorded rows: the table's name in lower case, and the key.
pub(crate) fn all(db: &Connection) -> Result<HashSet<(String, Vec<u8>)>> {
    let sql = "SELECT t.name, u.key FROM warren_unseen u JOIN warren_table t ON t.id = u.table_id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    rows.map(|row| row.map(|(name, key)| (name.to_ascii_lowercase(), key)).map_err(Into::into))
        .collect()
}
