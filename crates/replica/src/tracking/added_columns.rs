//! Captures columns that were added to a table since the schema was last compared.
//!
//! A migration gives each row a value: by the column's default, which is in the declaration, or by
//! writing it, as Django's `AddField` does. No user meant a row by that, and every device does it
//! when its program is updated, so it must not win over values that people wrote on devices that
//! were updated earlier. It is sent as backfill (Format 1), which is older than every edit.
//!
//! # Invariants
//! - The author of a value that is written before its column is captured has not seen other
//!   devices' values of it.

use std::collections::BTreeMap;

use crdt::{ColumnId, Value};
use rusqlite::{Connection, OptionalExtension};
use sqlite_schema::{ColumnSchema, quote_identifier};

use super::{BaselineWriter, find, record_column};
use crate::apply::row_state;
use crate::capture::triggers::{self, UNSEEN};
use crate::error::Result;
use crate::log::value_chunks;
use crate::row_id::RowId;
use crate::schema::tracked_table::{CapturedColumn, TrackedTable};
use crate::sql_value::{BoundValue, read};

/// The maximum bytes of distinct values among which the most common one is searched. A value that a
/// migration has written to every row is among the first.
const COUNTED_BYTES_MAX: usize = 16 << 20;

/// Captures the added columns, and records their values as changes.
pub(crate) fn capture_added(
    db: &Connection,
    table: &TrackedTable,
    added: &[ColumnSchema],
    at_ms: u64,
) -> Result<()> {
    let columns_count = find(db, table.id)?.columns.len();
    for (position, declared) in (columns_count..).zip(added) {
        let known = pending_column(db, table.id, &declared.name)?;
        record_column(db, table.id, declared, Some(position))?;
        let table = find(db, table.id)?;
        let column = table.columns.last().expect("it was noted as the last one");
        insert_pending_values(db, &table, column, declared, at_ms)?;
        if let Some(known) = known {
            mark_rows_dirty(db, &table, known)?;
        }
    }
    Ok(())
}

/// Records the values of the rows that differ from the column's default.
fn insert_pending_values(
    db: &Connection,
    table: &TrackedTable,
    column: &CapturedColumn,
    declared: &ColumnSchema,
    at_ms: u64,
) -> Result<()> {
    let fill = migration_value(db, table, declared)?;
    if let Some(fill) = &fill {
        let sql = "UPDATE warren_column SET fill = ?2 WHERE id = ?1";
        db.prepare_cached(sql)?.execute((column.id, BoundValue(fill)))?;
    }
    let mut baseline = BaselineWriter::open(db)?;
    let (name, default) = (quote_identifier(&table.name), declared.default_sql());
    let keys: Vec<_> = table.key.iter().map(|column| quote_identifier(column)).collect();
    let (keys, value, named) =
        (keys.join(", "), quote_identifier(&declared.name), table.key_not_null_sql(""));
    let sql =
        format!("SELECT {value}, {keys} FROM {name} WHERE {value} IS NOT ({default}) AND {named}");
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let value = read(row, 0, 1)?.pop().expect("one was read");
        let key = read(row, 1, table.key.len())?;
        let known = row_state::load(db, &RowId::new(table.id, &key))?;
        let cell = known.as_ref().and_then(|row| row.cell(column.id));
        let row = known.filter(|row| row.is_live() && cell.is_none());
        if let (Some(row), Some(fill)) = (row, &fill) {
            // This also applies to rows whose value a user has replaced since.
            baseline.add(table, row, key.clone(), vec![(column, fill.clone())])?;
        }
        if fill.as_ref().is_none_or(|fill| !value_chunks::is_same_value(&value, fill)) {
            insert_pending(db, table, &key, cell.is_some(), at_ms)?;
        }
    }
    baseline.close()
}

/// Returns the value that a migration has written to every row, if it has: the most common one of a
/// column in which no row has the declared default.
///
/// Only rows that were synced before are counted. Rows that programs have inserted since show what
/// users want, not what the migration did, and there may be more of them.
fn migration_value(
    db: &Connection,
    table: &TrackedTable,
    declared: &ColumnSchema,
) -> Result<Option<Value>> {
    let (name, default) = (quote_identifier(&table.name), declared.default_sql());
    let keys: Vec<_> = table.key.iter().map(|column| quote_identifier(column)).collect();
    let (keys, value, named) =
        (keys.join(", "), quote_identifier(&declared.name), table.key_not_null_sql(""));
    let sql = format!("SELECT {value}, {value} IS ({default}), {keys} FROM {name} WHERE {named}");
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut counted_bytes = 0;
    while let Some(row) = rows.next()? {
        let id = RowId::new(table.id, &read(row, 2, table.key.len())?);
        if !row_state::load(db, &id)?.is_some_and(|row| row.is_live()) {
            continue;
        }
        if row.get(1)? {
            return Ok(None);
        }
        let value = Value::encode_key(&read(row, 0, 1)?);
        if let Some(count) = counts.get_mut(&value) {
            *count += 1;
        } else if counted_bytes < COUNTED_BYTES_MAX {
            counted_bytes += value.len();
            counts.insert(value, 1);
        }
    }
    let most_common = counts.iter().max_by_key(|(_, count)| **count);
    Ok(most_common.and_then(|(value, _)| Value::decode_key(value).ok()?.pop()))
}

/// Records that the last column was written.
fn insert_pending(
    db: &Connection,
    table: &TrackedTable,
    key: &[Value],
    is_unseen: bool,
    at_ms: u64,
) -> Result<()> {
    let bit = if is_unseen { char::from(UNSEEN) } else { '1' };
    let changed_columns = format!("{}{bit}", "0".repeat(table.columns.len() - 1));
    triggers::add_note(db, table, key, &changed_columns, at_ms)
}

/// Returns the id of a column that was known before, from this file's table or from other devices.
fn pending_column(db: &Connection, table: i64, name: &str) -> Result<Option<ColumnId>> {
    let sql = "SELECT id FROM warren_column WHERE table_id = ?1 AND name = ?2";
    Ok(db.prepare_cached(sql)?.query_row((table, name), |row| row.get(0)).optional()?)
}

/// Marks the rows as dirty for which other devices sent a value of the column.
fn mark_rows_dirty(db: &Connection, table: &TrackedTable, column: ColumnId) -> Result<()> {
    let mut statement = db.prepare("SELECT key FROM warren_row WHERE table_id = ?1")?;
    let keys = statement.query_map([table.id], |row| row.get::<_, Vec<u8>>(0))?;
    for key in keys {
        let id = RowId { table: table.id, key: key? };
        if row_state::load(db, &id)?.is_some_and(|row| row.cell(column).is_some()) {
            row_state::mark_dirty(db, &id, true)?;
        }
    }
    Ok(())
}
