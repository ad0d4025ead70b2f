//! Lists hidden rows, which exist in the messages but not in their table, because they collide with
//! newer rows or do not fit the table. A user can give one another value, so that it becomes
//! visible, merge it into the visible row that it collides with, or delete it. Deleted rows that
//! others refer to, and that cannot be visible, are listed, too: merging one moves the references.

mod dropped_references;
mod merge;

use crdt::{Change, RowState, Value};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

pub use self::merge::MergedRow;
use super::{json, short_id};
use crate::apply::row_state::{self, NameResolver};
use crate::apply::row_writer::{self, InsertOutcome, RowValues};
use crate::apply::visibility_override::{self, VisibilityOverrideKind};
use crate::capture::timestamping::{self, CorrectedClock};
use crate::connection_flags::{ConnectionFlags, set_triggers};
use crate::error::{Error, Result};
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::{key_to_literals, to_literal};
use crate::tracking::schema_change;

/// A row that is not visible in its table, although it is live, or deleted and still referred to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HiddenRow {
    /// The id of the row, which is the same on all devices.
    pub id: String,
    /// The name of the table.
    pub table: String,
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// The kind of reason why the row is hidden.
    pub kind: VisibilityOverrideKind,
    /// The reason in words, often the error message from SQLite.
    pub reason: String,
    /// The columns and their values as SQL literals, as far as they are known.
    #[serde(serialize_with = "json::object")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub cells: Vec<(String, String)>,
    /// The key of the visible row with the same unique value, as SQL literals: the two rows can be
    /// merged. Null if there is no such row.
    pub same_as: Option<String>,
}

const ID_DIGITS: usize = 8;

struct HiddenRowMatch {
    row: HiddenRow,
    digest: String,
    id: RowId,
    rival: Option<RowId>,
}

impl Replica {
    /// Returns the hidden rows.
    pub fn hidden_rows(&self) -> Result<Vec<HiddenRow>> {
        if !visibility_override::is_any(&self.db)? {
            return Ok(Vec::new());
        }
        // Conflicting rows are found by trying to insert the hidden row.
        let found = self.transaction(find)?;
        Ok(found.into_iter().map(|found| found.row).collect())
    }

    /// Makes a hidden row visible with another value in one column, as any program would write it.
    /// `id` may be shortened.
    ///
    /// # Errors
    /// [`Error::ConstraintViolated`] if the row still does not fit.
    pub fn resolve_hidden_row(
        &self,
        id: &str,
        column: &str,
        value: &str,
        now_ms: u64,
    ) -> Result<HiddenRow> {
        // Foreign keys are enforced, because this is a user's write.
        self.transaction_with_flags(ConnectionFlags { triggers: false, foreign_keys: true }, |db| {
            schema_change::follow_schema_changes(db, now_ms)?;
            let found = short_id::resolve(find(db)?, id, |one| &one.digest)?;
            set_triggers(db, true)?;
            let shown = insert_with_value(db, &found, column, value);
            set_triggers(db, false)?;
            shown?;
            // A write from now on counts as having seen the row's state.
            visibility_override::clear(db, &found.id)?;
            Ok(found.row)
        })
    }

    /// Deletes a hidden row on all devices. `id` may be shortened.
    ///
    /// # Errors
    /// [`Error::Referenced`] if other rows refer to it.
    pub fn delete_hidden_row(&self, id: &str, now_ms: u64) -> Result<HiddenRow> {
        self.transaction(|db| {
            let SelectedHiddenRow { found, tables, now } = select_after_changes(db, id, now_ms)?;
            let endings = dropped_references::dropped_references(
                db,
                &tables,
                &found.id,
                found.rival.as_ref(),
            )?;
            let count = endings.len() as u64;
            if count > 0 {
                let HiddenRow { id, table, key, same_as, .. } = found.row;
                let has_same = same_as.is_some();
                return Err(Error::Referenced { table, key, count, same: has_same.then_some(id) });
            }
            delete(db, now, &found.row.table, &found.id)?;
            visibility_override::clear(db, &found.id)?;
            Ok(found.row)
        })
    }
}

fn find(db: &Connection) -> Result<Vec<HiddenRowMatch>> {
    let sql =
        "SELECT table_id, key, kind, reason FROM warren_visibility_override ORDER BY table_id, key";
    let (tables, mut names) = (TrackedTable::all(db)?, NameResolver::new(db)?);
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = RowId { table: row.get(0)?, key: row.get(1)? };
        let kind = VisibilityOverrideKind::read(row.get_ref(2)?);
        let table = tables.iter().find(|table| table.id == id.table);
        let Some(table) = table.filter(|_| !kind.is_visible()) else { continue };
        let state = row_state::load(db, &id)?.unwrap_or_default();
        let values = row_state::values(&mut names, &state)?;
        let cells = table
            .columns
            .iter()
            .filter_map(|column| Some((column.name.clone(), to_literal(values.get(&column.id)?))));
        let mut hasher = blake3::Hasher::new();
        hasher.update(table.name.to_ascii_lowercase().as_bytes()).update(&[0]).update(&id.key);
        let digest = hasher.finalize().to_hex().to_string();
        let rival = match RowValues::load(&mut names, table, &id, &state)? {
            Ok(values) => row_writer::rival(db, table, &values)?,
            Err(_) => None,
        };
        let same_as =
            rival.as_ref().map(|rival| Ok::<_, Error>(key_to_literals(&rival.key_values()?)));
        let row = HiddenRow {
            id: digest[..ID_DIGITS].to_owned(),
            table: table.name.clone(),
            key: key_to_literals(&id.key_values()?),
            kind,
            reason: row.get(3)?,
            cells: cells.collect(),
            same_as: same_as.transpose()?,
        };
        found.push(HiddenRowMatch { row, digest, id, rival });
    }
    Ok(found)
}

/// A hidden row that a user decides about, and the time of the decision.
struct SelectedHiddenRow {
    found: HiddenRowMatch,
    tables: Vec<TrackedTable>,
    now: CorrectedClock,
}

/// Timestamps the local changes first, so that the decision is later, and finds the hidden row.
fn select_after_changes(db: &Connection, id: &str, now_ms: u64) -> Result<SelectedHiddenRow> {
    schema_change::follow_schema_changes(db, now_ms)?;
    let now = CorrectedClock { device_ms: now_ms, offset_ms: 0 };
    let tables = TrackedTable::all(db)?;
    timestamping::timestamp_pending(db, &tables, now)?;
    Ok(SelectedHiddenRow {
        found: short_id::resolve(find(db)?, id, |one| &one.digest)?,
        tables,
        now,
    })
}

/// Deletes a live row on all devices, as an author who has seen all of it.
fn delete(db: &Connection, now: CorrectedClock, table: &str, id: &RowId) -> Result<()> {
    let Some(row) = row_state::load(db, id)?.filter(RowState::is_live) else { return Ok(()) };
    let seen = row.cells().iter().map(|cell| cell.1).chain([row.newest_write()]).collect();
    let (table, key) = (table.to_owned(), id.key_values()?);
    timestamping::append_change(db, now, &Change::Delete { table, key, replaced: seen })
}

fn insert_with_value(
    db: &Connection,
    found: &HiddenRowMatch,
    column: &str,
    value: &str,
) -> Result<()> {
    let refused = |reason: String| Error::ConstraintViolated { reason };
    let tables = TrackedTable::all(db)?;
    let table = tables.iter().find(|table| table.id == found.id.table).expect("found among them");
    let named = table.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column));
    let named = named.ok_or_else(|| refused(format!("the table has no column {column}")))?;
    let row = row_state::load(db, &found.id)?.unwrap_or_default();
    let values = RowValues::load(&mut NameResolver::new(db)?, table, &found.id, &row)?;
    let mut values = values.map_err(|unfit| refused(unfit.reason))?;
    // SQLite converts the text by the column's affinity.
    values.set(&named.name, Value::Text(value.to_owned()));
    match row_writer::insert_row(db, table, &values)? {
        InsertOutcome::Inserted => Ok(()),
        InsertOutcome::Rejected(reason) => Err(refused(reason)),
        InsertOutcome::ConflictsWith(rival) => {
            let rival = key_to_literals(&rival.key_values()?);
            Err(refused(format!("the value is already used by the row with key {rival}")))
        }
    }
}
