//! Writes a row's newest values to the user's table, or deletes the row.
//!
//! # Invariants
//! - Values come from the log, by the timestamps of the row state; nothing is computed here.
//! - SQLite judges a table's constraints: a row that it rejects is reported, not forced.

use std::collections::HashMap;

use crdt::{ColumnId, RowState, Value};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use sqlite_schema::quote_identifier;

use super::row_state::{self, NameResolver};
use super::visibility_override::{VisibilityOverride, VisibilityOverrideKind};
use crate::error::{Error, Result};
use crate::log::value_chunks;
use crate::row_id::RowId;
use crate::schema::schema_conflict;
use crate::schema::tracked_table::{TrackedTable, is_exactly, row_exists};
use crate::sql_value::{BoundValue, read};

/// The result of a write to a user's table.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    Written,
    /// SQLite rejected the write, with this message.
    Rejected(String),
}

/// The result of inserting a row that was not in the table.
#[derive(Debug)]
pub(crate) enum InsertOutcome {
    Inserted,
    /// The table itself rejects the row, with SQLite's message.
    Rejected(String),
    /// This other row has a value that must be unique.
    ConflictsWith(RowId),
}

/// A row's values by column name: those of the key and of the known cells.
pub(crate) struct RowValues<'a> {
    key: Vec<(&'a String, Value)>,
    cells: Vec<(&'a String, Value)>,
}

impl<'a> RowValues<'a> {
    /// Loads the values of a row. Returns an override if the key does not fit the table, or a chunk
    /// of a value is missing.
    pub(crate) fn load(
        names: &mut NameResolver<'_>,
        table: &'a TrackedTable,
        id: &RowId,
        row: &RowState,
    ) -> Result<std::result::Result<Self, VisibilityOverride>> {
        let key = id.key_values()?;
        if let Some(reason) = table.key_mismatch(&key) {
            return Ok(Err(VisibilityOverride::new(VisibilityOverrideKind::InvalidKey, reason)));
        }
        let mut values: HashMap<ColumnId, Value> = row_state::values(names, row)?;
        let columns = table.columns.iter();
        let mut cells: Vec<_> =
            columns.filter_map(|c| values.remove(&c.id).map(|value| (&c.name, value))).collect();
        if let Some(reason) =
            value_chunks::assemble_row(names.db, cells.iter_mut().map(|cell| &mut cell.1))?
        {
            return Ok(Err(VisibilityOverride::new(VisibilityOverrideKind::Incomplete, reason)));
        }
        Ok(Ok(Self { key: table.key.iter().zip(key).collect(), cells }))
    }

    /// Returns all values, the key's first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.key.iter().chain(&self.cells).map(|(name, value)| (name.as_str(), value))
    }

    fn get(&self, column: &str) -> Option<&Value> {
        let mut all = self.key.iter().chain(&self.cells);
        all.find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, value)| value)
    }

    fn bound(&self) -> impl rusqlite::Params + use<'_> {
        params_from_iter(self.key.iter().chain(&self.cells).map(|(_, value)| BoundValue(value)))
    }

    /// Sets the value of one cell.
    pub(crate) fn set(&mut self, column: &'a String, value: Value) {
        match self.cells.iter_mut().find(|(name, _)| *name == column) {
            Some(cell) => cell.1 = value,
            None => self.cells.push((column, value)),
        }
    }

    /// Returns the values of these columns, or `None` if one is NULL or unknown: such a tuple
    /// refers to nothing, and collides with nothing.
    pub(crate) fn tuple(&self, columns: &[String]) -> Option<Vec<Value>> {
        let values = columns.iter().map(|column| self.get(column).cloned());
        values.map(|value| value.filter(|value| *value != Value::Null)).collect()
    }
}

/// Returns the `INSERT` of the values into their columns. It overrides conflict clauses of the
/// table (`ON CONFLICT REPLACE`), because no other row may change.
fn insert(table: &TrackedTable, values: &RowValues<'_>) -> String {
    let names = values.key.iter().chain(&values.cells).map(|(name, _)| quote_identifier(name));
    let columns = names.collect::<Vec<_>>();
    let places: Vec<_> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let (name, columns, places) =
        (quote_identifier(&table.name), columns.join(", "), places.join(", "));
    format!("INSERT OR ABORT INTO {name} ({columns}) VALUES ({places})")
}

/// Inserts the row, or updates its known cells.
pub(crate) fn upsert_row(
    db: &Connection,
    table: &TrackedTable,
    values: &RowValues<'_>,
) -> Result<WriteOutcome> {
    let insert = insert(table, values);
    let key: Vec<_> = table.key.iter().map(|name| quote_identifier(name)).collect();
    // A row that consists only of its key is updated to the same value, to count as written.
    let updates = if values.cells.is_empty() { &values.key[..1] } else { &values.cells };
    let updates =
        updates.iter().map(|(name, _)| format!("{0} = excluded.{0}", quote_identifier(name)));
    let updates = updates.collect::<Vec<_>>().join(", ");
    // The key's index may treat another row as this one.
    let same = table.has_key(|place| format!("excluded.{}", key[place]));
    let sql =
        format!("{insert} ON CONFLICT ({}) DO UPDATE SET {updates} WHERE {same}", key.join(", "));
    let run = || db.prepare_cached(&sql)?.execute(values.bound());
    Ok(match attempt(db, run)? {
        Ok(0) => WriteOutcome::Rejected(
            "another row has an equal key under the column's collation".into(),
        ),
        Ok(_) => WriteOutcome::Written,
        Err(reason) => WriteOutcome::Rejected(reason),
    })
}

/// Inserts a row that is not in the table, or returns a row that conflicts with it.
pub(crate) fn insert_row(
    db: &Connection,
    table: &TrackedTable,
    values: &RowValues<'_>,
) -> Result<InsertOutcome> {
    let key: Vec<_> = table.key.iter().map(|name| quote_identifier(name)).collect();
    // Without a conflict target, the clause covers every UNIQUE index, including partial ones and
    // those of expressions. The conflicting row is updated to its own value, and thereby returned.
    let sql = format!(
        "{} ON CONFLICT DO UPDATE SET {1} = {1} RETURNING {2}",
        insert(table, values),
        key[0],
        key.join(", "),
    );
    let run = || {
        let mut statement = db.prepare_cached(&sql)?;
        statement.query_row(values.bound(), |row| read(row, 0, table.key.len()))
    };
    let found = match attempt(db, run)? {
        Ok(found) => RowId::new(table.id, &found),
        Err(reason) => return Ok(InsertOutcome::Rejected(reason)),
    };
    let own: Vec<_> = values.key.iter().map(|(_, value)| value.clone()).collect();
    let is_own = found == RowId::new(table.id, &own);
    Ok(if is_own { InsertOutcome::Inserted } else { InsertOutcome::ConflictsWith(found) })
}

/// Returns the visible row whose unique value a hidden row needs.
pub(crate) fn rival(
    db: &Connection,
    table: &TrackedTable,
    values: &RowValues<'_>,
) -> Result<Option<RowId>> {
    db.execute_batch("SAVEPOINT warren_rival")?;
    let placed = insert_row(db, table, values);
    db.execute_batch("ROLLBACK TO warren_rival; RELEASE warren_rival")?;
    Ok(match placed? {
        InsertOutcome::ConflictsWith(rival) => Some(rival),
        InsertOutcome::Inserted | InsertOutcome::Rejected(_) => None,
    })
}

/// Runs a statement on a user's table. The inner `Err` is SQLite's message if it rejects the
/// statement because of the table.
fn attempt<T>(
    db: &Connection,
    run: impl FnOnce() -> rusqlite::Result<T>,
) -> Result<std::result::Result<T, String>> {
    let was_open = !db.is_autocommit();
    let error = match run() {
        Ok(done) => return Ok(Ok(done)),
        Err(error) => error,
    };
    let reason = schema_conflict::rejection_text(error.into())?;
    // A trigger may end the transaction, and with it all work so far.
    if was_open && db.is_autocommit() { Err(Error::RolledBack { reason }) } else { Ok(Err(reason)) }
}

/// Returns the reason why rows cannot be inserted into the table or deleted from it, if any.
pub(crate) fn why_not_writable(db: &Connection, table: &TrackedTable) -> Result<Option<String>> {
    let columns = table.key.iter().chain(table.columns.iter().map(|column| &column.name));
    let columns: Vec<_> = columns.map(|name| quote_identifier(name)).collect();
    let places = vec!["NULL"; columns.len()].join(", ");
    let name = quote_identifier(&table.name);
    let insert = format!("INSERT INTO {name} ({}) VALUES ({places})", columns.join(", "));
    for sql in [insert, format!("DELETE FROM {name} WHERE {}", table.key_condition())] {
        if let Err(reason) = attempt(db, || db.prepare_cached(&sql).map(drop))? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

/// Deletes the row from the table, if it exists.
pub(crate) fn delete_row(
    db: &Connection,
    table: &TrackedTable,
    id: &RowId,
) -> Result<WriteOutcome> {
    let Some(key) = table.key_of(id)? else { return Ok(WriteOutcome::Written) };
    let sql =
        format!("DELETE FROM {} WHERE {}", quote_identifier(&table.name), table.key_condition());
    let run = || db.prepare_cached(&sql)?.execute(params_from_iter(key.iter().map(BoundValue)));
    Ok(attempt(db, run)?.map_or_else(WriteOutcome::Rejected, |_| WriteOutcome::Written))
}

/// Gives the row another key, if it exists.
pub(crate) fn rekey(
    db: &Connection,
    table: &TrackedTable,
    old: &RowId,
    new: &[Value],
) -> Result<WriteOutcome> {
    let Some(key) = table.key_of(old)? else { return Ok(WriteOutcome::Written) };
    let set =
        |(place, name): (usize, &String)| format!("{} = ?{}", quote_identifier(name), place + 1);
    let set = table.key.iter().enumerate().map(set).collect::<Vec<_>>().join(", ");
    let (name, condition) =
        (quote_identifier(&table.name), table.key_condition_from(new.len() + 1));
    let sql = format!("UPDATE OR ABORT {name} SET {set} WHERE {condition}");
    let values = || params_from_iter(new.iter().chain(&key).map(BoundValue));
    if let Err(reason) = attempt(db, || db.prepare_cached(&sql)?.execute(values()))? {
        return Ok(WriteOutcome::Rejected(reason));
    }
    // A trigger may turn the statement into a no-op.
    let is_there = row_exists(db, table, old)?;
    Ok(if is_there {
        WriteOutcome::Rejected("a trigger prevents changing the key".into())
    } else {
        WriteOutcome::Written
    })
}

/// Sets the value of one cell, if the table has the row.
pub(crate) fn write_cell(
    db: &Connection,
    table: &TrackedTable,
    id: &RowId,
    (column, value): (&str, &Value),
) -> Result<WriteOutcome> {
    let Some(key) = table.key_of(id)? else { return Ok(WriteOutcome::Written) };
    let (name, column) = (quote_identifier(&table.name), quote_identifier(column));
    let condition = table.key_condition_from(2);
    let sql = format!("UPDATE {name} SET {column} = ?1 WHERE {condition}");
    let values = || params_from_iter(std::iter::once(value).chain(&key).map(BoundValue));
    let written = attempt(db, || db.prepare_cached(&sql)?.execute(values()))?;
    Ok(written.map_or_else(WriteOutcome::Rejected, |_| WriteOutcome::Written))
}

/// Returns the value of one cell, if the table has the row.
pub(crate) fn cell(
    db: &Connection,
    table: &TrackedTable,
    id: &RowId,
    column: &str,
) -> Result<Option<Value>> {
    let Some(key) = table.key_of(id)? else { return Ok(None) };
    let (name, column) = (quote_identifier(&table.name), quote_identifier(column));
    let sql = format!("SELECT {column} FROM {name} WHERE {}", table.key_condition());
    let mut statement = db.prepare_cached(&sql)?;
    let found =
        statement.query_row(params_from_iter(key.iter().map(BoundValue)), |r| read(r, 0, 1));
    Ok(found.optional()?.and_then(|mut values| values.pop()))
}

/// Returns whether a row of `table` has exactly these stored values in these columns.
pub(crate) fn exists(
    db: &Connection,
    table: &TrackedTable,
    columns: &[String],
    tuple: &[Value],
) -> Result<bool> {
    let sql = format!(
        "SELECT 1 FROM {} WHERE {} LIMIT 1",
        quote_identifier(&table.name),
        has_values(columns)
    );
    Ok(db.prepare_cached(&sql)?.exists(params_from_iter(tuple.iter().map(BoundValue)))?)
}

/// Returns the rows of `table` that have exactly these stored values in these columns.
pub(crate) fn rows_with(
    db: &Connection,
    table: &TrackedTable,
    columns: &[String],
    tuple: &[Value],
) -> Result<Vec<RowId>> {
    let key: Vec<_> = table.key.iter().map(|name| quote_identifier(name)).collect();
    let (key, name, named) =
        (key.join(", "), quote_identifier(&table.name), table.key_not_null_sql(""));
    let sql = format!("SELECT {key} FROM {name} WHERE {} AND {named}", has_values(columns));
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(tuple.iter().map(BoundValue)), |row| {
        Ok(RowId::new(table.id, &read(row, 0, table.key.len())?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns an SQL condition that the columns hold exactly the parameters.
fn has_values(columns: &[String]) -> String {
    let one = |(place, column): (usize, &String)| {
        let (column, value) = (quote_identifier(column), format!("?{}", place + 1));
        // The first comparison can use an index.
        format!("{column} = {value} AND {}", is_exactly(&column, &value))
    };
    columns.iter().enumerate().map(one).collect::<Vec<_>>().join(" AND ")
}
