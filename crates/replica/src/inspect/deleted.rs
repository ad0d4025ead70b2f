//! Lists deleted rows with their last values, so that they can be written again.
//!
//! This is a query over the row states, which keep the timestamps of a deleted row's cells; the
//! values are in the log.

use crdt::Timestamp;
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::change_origin::ChangeOrigin;
use super::devices::DeviceNames;
use super::json;
use crate::apply::row_state::{self, NameResolver};
use crate::apply::row_writer::RowValues;
use crate::capture::timestamping::{self, CorrectedClock};
use crate::error::Result;
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::tracked_table::{self, TrackedTable};
use crate::sql_value::{key_to_literals, to_literal};
use crate::tracking::schema_change;

/// A row that was deleted and not created again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedRow {
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// The time of the deletion, and the device that made it.
    #[serde(flatten)]
    pub origin: ChangeOrigin,
    /// The columns, including those of the key, and their last values as SQL literals.
    #[serde(serialize_with = "json::object")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub cells: Vec<(String, String)>,
}

impl Replica {
    /// Records all writes since the last sync in the history, without a server, so that
    /// [`Self::history`] and [`Self::deleted_rows`] include them.
    ///
    /// Call this before deleting rows that may be needed again: a row that was written and deleted
    /// between two syncs is in no history.
    pub fn record_history(&self, now_ms: u64) -> Result<()> {
        self.transaction(|db| record(db, now_ms))
    }

    /// Returns the most recently deleted rows of a tracked table, newest first.
    pub fn deleted_rows(
        &self,
        table: &str,
        count_max: usize,
        now_ms: u64,
    ) -> Result<Vec<DeletedRow>> {
        self.transaction(|db| {
            record(db, now_ms)?;
            find(db, table, count_max)
        })
    }
}

fn record(db: &Connection, now_ms: u64) -> Result<()> {
    schema_change::follow_schema_changes(db, now_ms)?;
    timestamping::timestamp_pending(
        db,
        &TrackedTable::all(db)?,
        CorrectedClock { device_ms: now_ms, offset_ms: 0 },
    )?;
    Ok(())
}

fn find(db: &Connection, table: &str, count_max: usize) -> Result<Vec<DeletedRow>> {
    let tables = TrackedTable::all(db)?;
    let found = tables.iter().find(|known| known.name.eq_ignore_ascii_case(table));
    let Some(table) = found else { return Ok(Vec::new()) };
    let mut newest = tombstones(db, table)?;
    newest.sort_unstable_by(|a, b| b.cmp(a));
    let (mut names, devices) = (NameResolver::new(db)?, DeviceNames::load(db)?);
    let mut rows = Vec::new();
    for (timestamp, id) in newest {
        if rows.len() == count_max {
            break;
        }
        // A row that another refers to is visible although it is deleted.
        if tracked_table::row_exists(db, table, &id)? {
            continue;
        }
        let state = row_state::load(db, &id)?.unwrap_or_default();
        // Without all of its values, the row cannot be written again.
        let Ok(values) = RowValues::load(&mut names, table, &id, &state)? else { continue };
        let cells = values.all().map(|(column, value)| (column.to_owned(), to_literal(value)));
        rows.push(DeletedRow {
            key: key_to_literals(&id.key_values()?),
            origin: ChangeOrigin::new(timestamp, &devices),
            cells: cells.collect(),
        });
    }
    Ok(rows)
}

/// Returns the rows of the table whose newest change deleted them, with the time of that change.
fn tombstones(db: &Connection, table: &TrackedTable) -> Result<Vec<(Timestamp, RowId)>> {
    let mut statement = db.prepare_cached("SELECT key FROM warren_row WHERE table_id = ?1")?;
    let mut keys = statement.query([table.id])?;
    let mut dead = Vec::new();
    while let Some(row) = keys.next()? {
        let id = RowId { table: table.id, key: row.get(0)? };
        let state = row_state::load(db, &id)?.unwrap_or_default();
        if !state.is_live() && state.tombstone() != Timestamp::ZERO {
            dead.push((state.tombstone(), id));
        }
    }
    Ok(dead)
}
