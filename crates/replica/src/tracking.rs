//! Starts and stops tracking tables.
//!
//! # Invariants
//! - Rows that existed before their table was tracked lose to every tracked change: they are
//!   timestamped by the backfill.
//! - Untracking everything leaves no trace: the user's schema is unchanged.
//!
//! # Not here
//! - Following changes of the schema → `tracking/schema_change.rs`.

pub(crate) mod added_columns;
pub(crate) mod comparison;
pub(crate) mod schema_change;
pub(crate) mod track_tables;
pub(crate) mod trackable_tables;

use crdt::{BackfillClock, CellWrite, Change, Fingerprint, RowState, Value};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use sqlite_schema::{ColumnSchema, quote_identifier};
use utoipa::ToSchema;

use crate::apply::row_state::{self, NameResolver};
use crate::capture::triggers;
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::log::value_chunks;
use crate::meta::{self, ReplicaMetaKey};
use crate::row_id::RowId;
use crate::schema::tracked_table::{CapturedColumn, DeclaredTable, TrackedTable};
use crate::sql_value::read;

/// The result of tracking a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TrackingResult {
    /// The name of the table.
    pub table: String,
    /// The number of rows that existed when tracking began; 0 if the table was tracked before.
    pub rows_count: u64,
    /// Whether the table was tracked before.
    pub already_tracked: bool,
    /// Whether the table has auto keys. If two devices create rows with the same key, the row that
    /// syncs second gets a new key.
    pub auto_keys: bool,
}

/// Starts tracking a table: installs its triggers and backfills its rows.
pub(crate) fn track(db: &Connection, declared: &DeclaredTable) -> Result<TrackingResult> {
    let name = &declared.name;
    let id = NameResolver::new(db)?.table(name)?;
    let sql = "SELECT tracked FROM warren_table WHERE id = ?1";
    if db.query_row(sql, [id], |row| row.get::<_, bool>(0))? {
        let has_auto_key = find(db, id)?.has_auto_key;
        return Ok(TrackingResult {
            table: name.clone(),
            rows_count: 0,
            already_tracked: true,
            auto_keys: has_auto_key,
        });
    }
    record_columns(db, id, declared)?;
    // Other devices see the declared name, even if they wrote it in another case.
    let sql =
        "UPDATE warren_table SET tracked = 1, declaration_pending = 1, name = ?2 WHERE id = ?1";
    db.execute(sql, (id, name))?;
    let table = find(db, id)?;
    triggers::install(db, &table)?;
    // Rows of this table that other devices sent before must become visible.
    row_state::mark_table_dirty(db, id)?;
    let rows = add_backfill(db, &table)?;
    Ok(TrackingResult {
        table: name.clone(),
        rows_count: rows,
        already_tracked: false,
        auto_keys: table.has_auto_key,
    })
}

/// Returns a tracked table as it is recorded now.
pub(crate) fn find(db: &Connection, id: i64) -> Result<TrackedTable> {
    let tables = TrackedTable::all(db)?;
    Ok(tables.into_iter().find(|table| table.id == id).expect("it is tracked"))
}

fn record_columns(db: &Connection, table: i64, declared: &DeclaredTable) -> Result<()> {
    for (position, column) in declared.captured().enumerate() {
        record_column(db, table, column, Some(position))?;
    }
    for column in declared.key() {
        record_column(db, table, column, None)?;
    }
    Ok(())
}

pub(crate) fn record_column(
    db: &Connection,
    table: i64,
    column: &ColumnSchema,
    position: Option<usize>,
) -> Result<()> {
    let position = position.map(|position| i64::try_from(position).expect("at most 500 columns"));
    let key_position = (column.key_position > 0).then_some(column.key_position);
    let sql = "INSERT INTO warren_column (table_id, name, position, key_position)
               VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (table_id, name) DO UPDATE
               SET name = excluded.name, position = excluded.position,
                   key_position = excluded.key_position";
    db.prepare_cached(sql)?.execute((table, &column.name, position, key_position))?;
    Ok(())
}

/// Adds a backfill message for each row whose values are not known yet. Returns the number of rows
/// of the table.
fn add_backfill(db: &Connection, table: &TrackedTable) -> Result<u64> {
    let mut names = NameResolver::new(db)?;
    let mut baseline = BaselineWriter::open(db)?;
    let mut rows = 0;
    for_each_row(db, table, &[], |key, values, _| {
        rows += 1;
        let id = RowId::new(table.id, &key);
        let known = row_state::load(db, &id)?;
        if let Some(row) = &known
            && row.is_live()
            && is_known(&mut names, table, row, &values)?
        {
            return row_state::record_visible(db, &id);
        }
        if !table.foreign_keys.is_empty() {
            // The row may refer to a deleted row, which then stays visible.
            row_state::mark_dirty(db, &id, false)?;
        }
        let cells = table.columns.iter().zip(values).collect();
        baseline.add(table, known.unwrap_or_default(), key, cells)
    })?;
    baseline.close()?;
    Ok(rows)
}

/// Turns existing rows into messages that are older than every edit and do not count as edits.
pub(crate) struct BaselineWriter<'a> {
    log: MessageLog<'a>,
    baseline: BackfillClock,
    fingerprint: Fingerprint,
}

impl<'a> BaselineWriter<'a> {
    pub(crate) fn open(db: &'a Connection) -> Result<Self> {
        let baseline = BackfillClock {
            next: meta::number(db, ReplicaMetaKey::BackfillNext)?,
            node_id: meta::node_id(db)?,
        };
        Ok(Self { log: MessageLog::open(db)?, baseline, fingerprint: meta::fingerprint(db)? })
    }

    /// Adds these cells of a row to the log and to the row's state.
    pub(crate) fn add(
        &mut self,
        table: &TrackedTable,
        mut row: RowState,
        key: Vec<Value>,
        cells: Vec<(&CapturedColumn, Value)>,
    ) -> Result<()> {
        let full = || Error::Untrackable {
            table: table.name.clone(),
            reason: "too many existing rows to track".into(),
        };
        let Self { log, baseline, fingerprint } = self;
        let id = RowId::new(table.id, &key);
        let columns: Vec<_> = cells.iter().map(|(column, _)| column.id).collect();
        let cells =
            cells.into_iter().map(|(column, value)| CellWrite::new(&column.name, value)).collect();
        // The author of these cells may never have seen messages of other devices.
        let mut change =
            Change::Write { table: table.name.clone(), key, cells, replaced_tombstone: None };
        for chunk in value_chunks::extract_chunks(log.db, &mut change)? {
            value_chunks::add(
                log,
                baseline.next_timestamp().ok_or_else(full)?,
                chunk,
                fingerprint,
            )?;
        }
        let timestamp = baseline.next_timestamp().ok_or_else(full)?;
        row.write(timestamp);
        for column in columns {
            row.write_cell(column, timestamp);
        }
        log.add_local(timestamp, &change, fingerprint)?;
        row_state::save(log.db, &id, &row)
    }

    pub(crate) fn close(self) -> Result<()> {
        let Self { log, baseline, fingerprint } = self;
        meta::set_number(log.db, ReplicaMetaKey::BackfillNext, baseline.next)?;
        meta::set_fingerprint(log.db, &fingerprint)
    }
}

/// Returns whether the row state has these values of the captured columns.
fn is_known(
    names: &mut NameResolver<'_>,
    table: &TrackedTable,
    row: &RowState,
    values: &[Value],
) -> Result<bool> {
    let known = row_state::values(names, row)?;
    let mut pairs = table.columns.iter().zip(values);
    Ok(pairs.all(|(column, value)| {
        value_chunks::is_same_value(value, known.get(&column.id).unwrap_or(&Value::Null))
    }))
}

/// Visits each row without NULL in its key, with the key, the captured columns and the values of
/// these SQL expressions.
pub(crate) fn for_each_row(
    db: &Connection,
    table: &TrackedTable,
    expressions: &[String],
    mut visit: impl FnMut(Vec<Value>, Vec<Value>, Vec<Value>) -> Result<()>,
) -> Result<()> {
    let columns = std::iter::once(table.column_list()).chain(expressions.iter().cloned());
    let sql = format!(
        "SELECT {} FROM {} WHERE {}",
        columns.collect::<Vec<_>>().join(", "),
        quote_identifier(&table.name),
        table.key_not_null_sql("")
    );
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key_count, count) = (table.key.len(), table.columns.len());
        let key = read(row, 0, key_count)?;
        let values = read(row, key_count, count)?;
        visit(key, values, read(row, key_count + count, expressions.len())?)?;
    }
    Ok(())
}

/// Stops tracking one table. Its messages and row states stay, in case it is tracked again.
pub(crate) fn untrack(db: &Connection, name: &str) -> Result<()> {
    let sql = "SELECT id, name FROM warren_table WHERE name = ?1 AND tracked = 1";
    let found = db.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let not_tracked =
        || Error::Untrackable { table: name.into(), reason: "the table is not tracked".into() };
    let (id, name): (i64, String) = found.ok_or_else(not_tracked)?;
    triggers::remove(db, &name)?;
    db.execute("UPDATE warren_table SET tracked = 0, declaration_pending = 0 WHERE id = ?1", [id])?;
    db.execute(
        "UPDATE warren_column SET position = NULL, key_position = NULL, fill = NULL
         WHERE table_id = ?1",
        [id],
    )?;
    for table in [
        "warren_outbox",
        "warren_dirty_row",
        "warren_visibility_override",
        "warren_provisional_key",
    ] {
        db.execute(&format!("DELETE FROM {table} WHERE table_id = ?1"), [id])?;
    }
    Ok(())
}

/// Removes everything of Warren from the file.
pub(crate) fn remove_all(db: &Connection) -> Result<()> {
    let names = db
        .prepare("SELECT name FROM warren_table WHERE tracked = 1")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for name in names {
        triggers::remove(db, &name)?;
    }
    let ours = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'warren\\_%' ESCAPE '\\'")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for table in ours {
        db.execute_batch(&format!("DROP TABLE {}", quote_identifier(&table)))?;
    }
    Ok(())
}
