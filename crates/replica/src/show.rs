//! Showing rows: puts a row's newest values into the user's table, or takes the row out.
//!
//! # Invariants
//! - Values come from the log, by the state's timestamps; nothing is computed here.
//! - A table's constraints are SQLite's to judge: a row that it refuses is reported, not forced.

use std::collections::HashMap;

use crdt::{ColumnId, Row, Value};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params_from_iter};

use crate::error::{Error, Result};
use crate::state::{self, Names, RowId};
use crate::table::{Table, quote};
use crate::value::{Bound, read};

/// Whether SQLite took a row.
#[derive(Debug)]
pub(crate) enum Shown {
    Yes,
    /// A constraint refuses it, with SQLite's words.
    Refused(String),
}

/// A row's values by column name: the key's and the known cells'.
pub(crate) struct Values<'a> {
    key: Vec<(&'a String, Value)>,
    cells: Vec<(&'a String, Value)>,
}

impl<'a> Values<'a> {
    pub(crate) fn load(
        names: &mut Names<'_>,
        table: &'a Table,
        id: &RowId,
        row: &Row,
    ) -> Result<Self> {
        let mut values: HashMap<ColumnId, Value> = state::values(names, row)?;
        let cells = table.columns.iter();
        let cells = cells.filter_map(|c| values.remove(&c.id).map(|value| (&c.name, value)));
        let key = table.key.iter().zip(id.key_values()?).collect();
        Ok(Self { key, cells: cells.collect() })
    }

    fn get(&self, column: &str) -> Option<&Value> {
        let mut all = self.key.iter().chain(&self.cells);
        all.find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, value)| value)
    }

    /// Takes another value for one cell.
    pub(crate) fn set(&mut self, column: &'a String, value: Value) {
        match self.cells.iter_mut().find(|(name, _)| *name == column) {
            Some(cell) => cell.1 = value,
            None => self.cells.push((column, value)),
        }
    }

    /// The values of these columns, or `None` if one is NULL or unknown: such a tuple refers to
    /// nothing, and collides with nothing.
    pub(crate) fn tuple(&self, columns: &[String]) -> Option<Vec<Value>> {
        let values = columns.iter().map(|column| self.get(column).cloned());
        values.map(|value| value.filter(|value| *value != Value::Null)).collect()
    }
}

/// Inserts the row, or brings its known cells up to date.
pub(crate) fn show(db: &Connection, table: &Table, values: &Values<'_>) -> Result<Shown> {
    let named: Vec<_> = values.key.iter().chain(&values.cells).collect();
    let columns: Vec<_> = named.iter().map(|(name, _)| quote(name)).collect();
    let places: Vec<_> = (1..=named.len()).map(|place| format!("?{place}")).collect();
    let updates = values.cells.iter().map(|(name, _)| format!("{0} = excluded.{0}", quote(name)));
    let updates = updates.collect::<Vec<_>>().join(", ");
    let on_conflict =
        if updates.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {updates}") };
    let key: Vec<_> = table.key.iter().map(|name| quote(name)).collect();
    let sql = format!(
        "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {on_conflict}",
        quote(&table.name),
        columns.join(", "),
        places.join(", "),
        key.join(", "),
    );
    let bound = params_from_iter(named.iter().map(|(_, value)| Bound(value)));
    match db.prepare_cached(&sql)?.execute(bound) {
        Ok(_) => Ok(Shown::Yes),
        Err(error) => refusal(error).map(Shown::Refused),
    }
}

fn refusal(error: rusqlite::Error) -> Result<String> {
    match error {
        rusqlite::Error::SqliteFailure(code, message)
            if matches!(code.code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) =>
        {
            Ok(message.unwrap_or_else(|| code.to_string()))
        }
        error => Err(Error::Sqlite(error)),
    }
}

/// Takes the row out of the table, if it is there.
pub(crate) fn hide(db: &Connection, table: &Table, id: &RowId) -> Result<()> {
    let sql = format!("DELETE FROM {} WHERE {}", quote(&table.name), table.key_condition());
    let key = id.key_values()?;
    db.prepare_cached(&sql)?.execute(params_from_iter(key.iter().map(Bound)))?;
    Ok(())
}

/// Whether the table has the row.
pub(crate) fn is_shown(db: &Connection, table: &Table, id: &RowId) -> Result<bool> {
    let sql = format!("SELECT 1 FROM {} WHERE {}", quote(&table.name), table.key_condition());
    let key = id.key_values()?;
    Ok(db.prepare_cached(&sql)?.exists(params_from_iter(key.iter().map(Bound)))?)
}

/// The value of one cell, if the table has the row.
pub(crate) fn cell(
    db: &Connection,
    table: &Table,
    id: &RowId,
    column: &str,
) -> Result<Option<Value>> {
    let (name, column) = (quote(&table.name), quote(column));
    let sql = format!("SELECT {column} FROM {name} WHERE {}", table.key_condition());
    let key = id.key_values()?;
    let mut statement = db.prepare_cached(&sql)?;
    let found = statement.query_row(params_from_iter(key.iter().map(Bound)), |r| read(r, 0, 1));
    Ok(found.optional()?.and_then(|mut values| values.pop()))
}

/// The keys of the rows whose `columns` have these values.
pub(crate) fn find(
    db: &Connection,
    table: &Table,
    columns: &[String],
    tuple: &[Value],
) -> Result<Vec<RowId>> {
    let key: Vec<_> = table.key.iter().map(|name| quote(name)).collect();
    let sql = format!(
        "SELECT {} FROM {} WHERE {}",
        key.join(", "),
        quote(&table.name),
        condition(columns)
    );
    let mut statement = db.prepare_cached(&sql)?;
    let bound = params_from_iter(tuple.iter().map(Bound));
    let found = statement.query_map(bound, |row| read(row, 0, table.key.len()))?;
    let found = found.map(|key| Ok(RowId::new(table.id, &key?)));
    found.collect()
}

/// Whether a row of `table` has these values in these columns.
pub(crate) fn exists(
    db: &Connection,
    table: &Table,
    columns: &[String],
    tuple: &[Value],
) -> Result<bool> {
    let name = quote(&table.name);
    let sql = format!("SELECT 1 FROM {name} WHERE {} LIMIT 1", condition(columns));
    let mut statement = db.prepare_cached(&sql)?;
    let found = statement.query_row(params_from_iter(tuple.iter().map(Bound)), |_| Ok(()));
    Ok(found.optional()?.is_some())
}

fn condition(columns: &[String]) -> String {
    let one = |(place, column): (usize, &String)| format!("{} = ?{}", quote(column), place + 1);
    columns.iter().enumerate().map(one).collect::<Vec<_>>().join(" AND ")
}
