//! Compares the tables with the row states, independently of the triggers. If a program wrote
//! without firing the triggers, its changes are in no message, and nothing else would find them.

use crdt::Value;
use rusqlite::Connection;
use serde::Serialize;
use sqlite_schema::quote_identifier;
use utoipa::ToSchema;

use crate::capture::timestamping::{self, CorrectedClock};
use crate::capture::triggers::{self, NEXT_KEY_AUTO_ASSIGNED};
use crate::error::Result;
use crate::replica::Replica;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::{key_to_literals, read};
use crate::tracking::{comparison, schema_change};

/// A row in a table that differs from the recorded changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RowDifference {
    /// The name of the table.
    pub table: String,
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// The kind of difference.
    pub kind: RowDifferenceKind,
    /// The names of the columns that differ; empty unless the row has different values.
    pub columns: Vec<String>,
}

/// The kind of difference between a row and the recorded changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowDifferenceKind {
    /// The table has the row, but no change created it.
    Unknown,
    /// The table lacks the row, but no change deleted it.
    Missing,
    /// The values of the row differ from the recorded changes.
    Changed,
}

/// The result of comparing all tables with the recorded changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct TablesVerification {
    /// The number of rows in the tables.
    pub rows_count: u64,
    /// The number of rows that differ from the changes.
    pub differing_count: u64,
    /// The first differences, at most 1,000.
    pub differences: Vec<RowDifference>,
}

const DIFFERENCES_COUNT_MAX: usize = 1_000;

impl Replica {
    /// Compares every tracked table with its changes, without changing anything. `progress`
    /// receives the name of the next table. Changes that the next sync would send anyway do not
    /// count as differences, nor do received changes that are not visible yet.
    pub fn verify(
        &self,
        now_ms: u64,
        mut progress: impl FnMut(&str),
    ) -> Result<TablesVerification> {
        self.undone(|db| {
            let mut found = TablesVerification::default();
            for table in pending_changed_tables(db, now_ms)? {
                progress(&table.name);
                let sql = format!("SELECT count(*) FROM {}", quote_identifier(&table.name));
                let rows: i64 = db.query_row(&sql, [], |row| row.get(0))?;
                found.rows_count += rows.cast_unsigned();
                comparison::insert_pending_differences(db, &table, now_ms)?;
                add_pending(db, &table, &mut found)?;
            }
            Ok(found)
        })
    }

    /// Records the differences of every tracked table, so that the next sync sends them.
    pub fn capture_differences(&self, now_ms: u64) -> Result<()> {
        self.transaction(|db| {
            for table in pending_changed_tables(db, now_ms)? {
                comparison::insert_pending_differences(db, &table, now_ms)?;
            }
            Ok(())
        })
    }
}

/// Captures the changes that the triggers and the schema show. Returns the tracked tables.
fn pending_changed_tables(db: &Connection, now_ms: u64) -> Result<Vec<TrackedTable>> {
    schema_change::follow_schema_changes(db, now_ms)?;
    let tables = TrackedTable::all(db)?;
    timestamping::timestamp_pending(
        db,
        &tables,
        CorrectedClock { device_ms: now_ms, offset_ms: 0 },
    )?;
    Ok(tables)
}

/// Adds the differences that the comparison recorded for a table.
fn add_pending(
    db: &Connection,
    table: &TrackedTable,
    found: &mut TablesVerification,
) -> Result<()> {
    let sql = format!(
        "SELECT changed_columns, {} FROM warren_outbox WHERE table_id = ?1
         AND changed_columns <> '{NEXT_KEY_AUTO_ASSIGNED}' ORDER BY seq",
        triggers::outbox_key_columns(table)
    );
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([table.id])?;
    while let Some(row) = rows.next()? {
        found.differing_count += 1;
        if found.differences.len() == DIFFERENCES_COUNT_MAX {
            continue;
        }
        let changed_columns: String = row.get(0)?;
        let key: Vec<Value> = read(row, 1, table.key.len())?;
        let kind = match &*changed_columns {
            "*" => RowDifferenceKind::Unknown,
            "-" => RowDifferenceKind::Missing,
            _ => RowDifferenceKind::Changed,
        };
        let differs =
            |(position, _): &(usize, &_)| changed_columns.as_bytes().get(*position) == Some(&b'1');
        let columns = table.columns.iter().enumerate().filter(differs);
        let columns = columns.map(|(_, column)| column.name.clone()).collect();
        let (table, key) = (table.name.clone(), key_to_literals(&key));
        found.differences.push(RowDifference { table, key, kind, columns });
    }
    Ok(())
}
