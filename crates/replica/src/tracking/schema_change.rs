//! Keeps tracking correct when the schema changes: columns are added, or tables are rebuilt.
//!
//! Most migration tools rebuild a table for changes that ALTER TABLE can't make: they copy it to a
//! new one and drop the old one, and with it its triggers. Until they are installed again, no
//! changes are recorded; [`comparison`] finds them.
//!
//! # Invariants
//! - A table whose triggers are not those that this version installs is compared with the row
//!   states, whatever else has changed, before anything is written to it.
//! - A removed column stops the sync with an error; nothing is guessed from names.

use rusqlite::Connection;
use sqlite_schema::ColumnSchema;

use super::{added_columns, comparison, find};
use crate::capture::triggers;
use crate::error::{Error, Result};
use crate::schema::tracked_table::{
    CapturedColumn, DeclaredTable, TrackedTable, check_not_shadowed,
};

/// Compares every tracked table with its recorded schema, and captures added columns.
///
/// `at_ms` is the time of changes for which no trigger recorded one.
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

/// Compares one table that lost no columns.
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
        // The constraints of the table may have changed.
        mark_declaration_pending(db, table)?;
        triggers::install(db, table)
    } else {
        Ok(())
    }
}

/// Returns a number that changes with every change of the schema.
pub(crate) fn schema_version(db: &Connection) -> Result<i64> {
    Ok(db.query_row("PRAGMA schema_version", [], |row| row.get(0))?)
}

/// Returns the tracked tables that were rebuilt or got columns, so that not all changes to them are
/// recorded until the next sync.
pub(crate) fn uncaptured_tables(db: &Connection) -> Result<Vec<String>> {
    let mut uncaptured = Vec::new();
    for table in TrackedTable::all(db)? {
        // The sync reports this error.
        if incompatible_change(db, &table)?.is_some() {
            continue;
        }
        if !triggers::is_installed(db, &table)? || !added_columns(db, &table)?.is_empty() {
            uncaptured.push(table.name);
        }
    }
    Ok(uncaptured)
}

/// Returns the difference to the recorded schema that makes tracking impossible, if there is one.
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

/// Makes the next sync send the table's declaration, if it has changed.
fn mark_declaration_pending(db: &Connection, table: &TrackedTable) -> Result<()> {
    db.execute("UPDATE warren_table SET declaration_pending = 1 WHERE id = ?1", [table.id])?;
    Ok(())
}
