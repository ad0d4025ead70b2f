//! What keeps tracking right when the schema changes: columns that came, tables that were rebuilt.
//!
//! Most migration tools rebuild a table for what ALTER TABLE can't do: they copy it to a new one and
//! drop the old one, and with it its triggers. Until they are installed again, nothing notes what
//! programs write; [`comparison`] finds it.
//!
//! # Invariants
//! - A table whose triggers are not those that this version installs is compared with the state,
//!   whatever else has changed, before anything is shown in it.
//! - A column that went away stops the sync with an error; nothing is guessed from names.

use rusqlite::Connection;
use sqlite_schema::ColumnSchema;

use super::{added_columns, comparison, find};
use crate::capture::triggers;
use crate::error::{Error, Result};
use crate::schema::tracked_table::{
    CapturedColumn, DeclaredTable, TrackedTable, check_not_shadowed,
};

/// Compares every tracked table with what was noted, and takes note of what was added.
///
/// `at_ms` is the time that changes get whose own time no trigger noted.
pub(crate) fn follow_schema_changes(db: &Connection, at_ms: u64) -> Result<()> {
    let tables = TrackedTable::all(db)?;
    check_not_shadowed(db, &tables)?;
    for table in tables {
        if let Some(what) = incompatible_change(db, &table)? {
            return Err(Error::SchemaChanged { table: table.name, what });
        }
        follow_table_changes(db, &table, at_ms)?;
    }
    Ok(())
}

/// Compares one table, of which nothing went away.
pub(crate) fn follow_table_changes(
    db: &Connection,
    table: &TrackedTable,
    at_ms: u64,
) -> Result<()> {
    let is_installed = triggers::is_installed(db, table)?;
    if !is_installed {
        comparison::insert_pending_differences(db, table, at_ms)?;
    }
    let added = added_columns(db, table)?;
    if !added.is_empty() {
        added_columns::capture_added(db, table, &added, at_ms)?;
        mark_declaration_pending(db, table)?;
        triggers::install(db, &find(db, table.id)?)
    } else if !is_installed {
        // Its constraints may be others now.
        mark_declaration_pending(db, table)?;
        triggers::install(db, table)
    } else {
        Ok(())
    }
}

/// A number that is another one after any change of the schema.
pub(crate) fn schema_version(db: &Connection) -> Result<i64> {
    Ok(db.query_row("PRAGMA schema_version", [], |row| row.get(0))?)
}

/// The tracked tables that were rebuilt or got columns, so that not every change to them is noted
/// until the next sync.
pub(crate) fn uncaptured_tables(db: &Connection) -> Result<Vec<String>> {
    let mut uncaptured = Vec::new();
    for table in TrackedTable::all(db)? {
        // What stops the sync is for the sync to say.
        if incompatible_change(db, &table)?.is_some() {
            continue;
        }
        if !triggers::is_installed(db, &table)? || !added_columns(db, &table)?.is_empty() {
            uncaptured.push(table.name);
        }
    }
    Ok(uncaptured)
}

/// What is no longer as it was noted, so that the table cannot be read as it was.
pub(crate) fn incompatible_change(db: &Connection, table: &TrackedTable) -> Result<Option<String>> {
    let Some(declared) = DeclaredTable::read(db, &table.name)? else {
        return Ok(Some("the table was dropped or renamed".into()));
    };
    let key: Vec<_> = declared.key().iter().map(|column| column.name.clone()).collect();
    if key != table.key {
        return Ok(Some("the primary key changed".into()));
    }
    let is_declared = |c: &&CapturedColumn| declared.captured().any(|d| d.name == c.name);
    let gone = table.columns.iter().find(|column| !is_declared(column));
    Ok(gone.map(|column| format!("column {} was renamed or dropped", column.name)))
}

fn added_columns(db: &Connection, table: &TrackedTable) -> Result<Vec<ColumnSchema>> {
    let is_new = |d: &&ColumnSchema| !table.columns.iter().any(|c| c.name == d.name);
    let declared = DeclaredTable::read(db, &table.name)?;
    let declared = declared.iter().flat_map(DeclaredTable::captured);
    Ok(declared.filter(is_new).cloned().collect())
}

/// The next sync sends the table's declaration, if it is another one.
fn mark_declaration_pending(db: &Connection, table: &TrackedTable) -> Result<()> {
    db.execute("UPDATE warren_table SET declaration_pending = 1 WHERE id = ?1", [table.id])?;
    Ok(())
}
