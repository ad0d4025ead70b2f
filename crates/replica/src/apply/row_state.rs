//! Stores each row's `crdt::RowState` by table and key, with numbers in place of column names.

use std::collections::HashMap;

use crdt::{Change, ColumnId, RowState, Timestamp, Value};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::row_id::RowId;

/// `warren_dirty_row.from_remote`: the table has another row under this one's key.
pub(crate) const UNDER_OTHER: i64 = 2;

pub(crate) fn load(db: &Connection, id: &RowId) -> Result<Option<RowState>> {
    let sql = "SELECT state FROM warren_row WHERE table_id = ?1 AND key = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let row = statement.query_row((id.table, &id.key), |row| {
        Ok(row.get_ref(0)?.as_blob().map(RowState::decode)?)
    });
    let damaged = |reason: crdt::DecodeError| Error::CorruptMessage {
        timestamp: format!("state of {:02x?}", id.key),
        reason: reason.to_string(),
    };
    row.optional()?.transpose().map_err(damaged)
}

/// Returns whether any change of the row has been merged.
pub(crate) fn is_known(db: &Connection, id: &RowId) -> Result<bool> {
    let sql = "SELECT 1 FROM warren_row WHERE table_id = ?1 AND key = ?2";
    Ok(db.prepare_cached(sql)?.exists((id.table, &id.key))?)
}

pub(crate) fn save(db: &Connection, id: &RowId, row: &RowState) -> Result<()> {
    let sql = "INSERT INTO warren_row VALUES (?1, ?2, ?3)
               ON CONFLICT (table_id, key) DO UPDATE SET state = excluded.state";
    db.prepare_cached(sql)?.execute((id.table, &id.key, row.encode()))?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "DELETE FROM warren_row WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Marks a row as dirty: its visible form must follow its state. With `from_remote`, it does not
/// follow the state yet.
pub(crate) fn mark_dirty(db: &Connection, id: &RowId, from_remote: bool) -> Result<()> {
    let sql = "INSERT INTO warren_dirty_row VALUES (?1, ?2, ?3)
               ON CONFLICT (table_id, key) DO UPDATE
               SET from_remote = max(from_remote, excluded.from_remote)";
    db.prepare_cached(sql)?.execute((id.table, &id.key, from_remote))?;
    Ok(())
}

/// Marks a row as dirty because the table has another row under its key, to be removed first.
pub(crate) fn mark_dirty_under_other(db: &Connection, id: &RowId) -> Result<()> {
    let sql = format!(
        "INSERT INTO warren_dirty_row VALUES (?1, ?2, {UNDER_OTHER})
         ON CONFLICT (table_id, key) DO UPDATE SET from_remote = {UNDER_OTHER}"
    );
    db.prepare_cached(&sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Records that the table's version of the row is the one of its state.
pub(crate) fn record_visible(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "UPDATE warren_dirty_row SET from_remote = 0 WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Returns whether the row waits to be materialized: the table may have an older version.
pub(crate) fn waits(db: &Connection, id: &RowId) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_dirty_row
                              WHERE table_id = ?1 AND key = ?2 AND from_remote)";
    Ok(db.prepare_cached(sql)?.query_row((id.table, &id.key), |row| row.get(0))?)
}

/// Resolves names of tables and columns to numbers, and assigns numbers to unknown names. It
/// includes the log, whose messages contain the names.
pub(crate) struct NameResolver<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) log: MessageLog<'a>,
    tables: HashMap<String, (i64, HashMap<String, ColumnId>)>,
}

impl<'a> NameResolver<'a> {
    pub(crate) fn new(db: &'a Connection) -> Result<Self> {
        Ok(Self { db, log: MessageLog::open(db)?, tables: HashMap::new() })
    }

    pub(crate) fn table(&mut self, name: &str) -> Result<i64> {
        if let Some((id, _)) = self.tables.get(name) {
            return Ok(*id);
        }
        let insert = "INSERT INTO warren_table (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
        self.db.prepare_cached(insert)?.execute([name])?;
        let select = "SELECT id FROM warren_table WHERE name = ?1";
        let id = self.db.prepare_cached(select)?.query_row([name], |row| row.get(0))?;
        self.tables.insert(name.to_owned(), (id, HashMap::new()));
        Ok(id)
    }

    pub(crate) fn column(&mut self, table: &str, name: &str) -> Result<ColumnId> {
        let table_id = self.table(table)?;
        let columns = &mut self.tables.get_mut(table).expect("entered by table()").1;
        if let Some(&id) = columns.get(name) {
            return Ok(id);
        }
        let insert = "INSERT INTO warren_column (table_id, name) VALUES (?1, ?2)
                      ON CONFLICT (table_id, name) DO NOTHING";
        self.db.prepare_cached(insert)?.execute((table_id, name))?;
        let select = "SELECT id FROM warren_column WHERE table_id = ?1 AND name = ?2";
        let id = self.db.prepare_cached(select)?.query_row((table_id, name), |row| row.get(0))?;
        columns.insert(name.to_owned(), id);
        Ok(id)
    }
}

/// Returns the newest known value of each cell of a row. Cells that one message wrote are read
/// together.
pub(crate) fn values(
    names: &mut NameResolver<'_>,
    row: &RowState,
) -> Result<HashMap<ColumnId, Value>> {
    let mut timestamps: Vec<Timestamp> = row.cells().iter().map(|cell| cell.1).collect();
    timestamps.sort_unstable();
    timestamps.dedup();
    let mut values = HashMap::with_capacity(row.cells().len());
    for timestamp in timestamps {
        let Change::Write { table, cells, .. } = names.log.change(timestamp)? else {
            let reason = "a cell refers to it, but it is not a write".into();
            return Err(Error::CorruptMessage { timestamp: timestamp.to_string(), reason });
        };
        for cell in cells {
            let column = names.column(&table, &cell.column)?;
            if row.cell(column) == Some(timestamp) {
                values.insert(column, cell.value);
            }
        }
    }
    Ok(values)
}

/// Returns whether two rows have equal values in the same columns, apart from their keys.
pub(crate) fn are_equal(db: &Connection, one: &RowId, other: &RowId) -> Result<bool> {
    let mut names = NameResolver::new(db)?;
    let mut of = |id| values(&mut names, &load(db, id)?.unwrap_or_default());
    Ok(of(one)? == of(other)?)
}

/// Marks every known row of a table as dirty, so that it is materialized next time.
pub(crate) fn mark_table_dirty(db: &Connection, table: i64) -> Result<()> {
    let sql = "INSERT INTO warren_dirty_row SELECT table_id, key, 1 FROM warren_row
               WHERE table_id = ?1 ON CONFLICT (table_id, key) DO UPDATE SET from_remote = 1";
    db.execute(sql, [table])?;
    Ok(())
}
