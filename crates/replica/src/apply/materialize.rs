//! Makes the visible tables follow the row states, including constraints.
//!
//! ```text
//! 1 show       every dirty row: live → its newest values, dead → removed
//! 2 hide       live rows that are not visible: of those that share a value that must be UNIQUE,
//!              the one with the newest write is visible, as long as the table accepts it
//! 3 resurrect  dead rows that a visible row refers to by a foreign key are visible all the same
//! ```
//!
//! # Invariants
//! - The result depends only on the set of messages, not on when or in which portions they arrived:
//!   *hidden* and *resurrected* are functions of the row states, defined in their modules.
//! - It terminates: every row is decided once.
//! - A table's schema is never a reason to fail: a row that SQLite rejects gets a visibility
//!   override with the reason, and a table that cannot be written to is left unchanged.
//! - Foreign keys are not enforced while materializing, because messages arrive in any order.
//!   Afterwards none is violated, unless the parent is unknown here or hidden, or the reference
//!   uses columns that are not its primary key, or values that are not stored exactly as its key
//!   is.

mod hidden;
mod resurrected;

use std::collections::{HashMap, VecDeque};

use crdt::Value;
use rusqlite::Connection;

use super::row_state::{self, NameResolver, UNDER_OTHER};
use super::row_writer::{self, RowValues, WriteOutcome};
use super::visibility_override::{self, VisibilityOverride, VisibilityOverrideKind};
use crate::capture::provisional_keys::raise_sequence;
use crate::capture::triggers;
use crate::connection_flags::set_triggers;
use crate::error::Result;
use crate::progress::PROGRESS_EVERY;
use crate::row_id::RowId;
use crate::schema::schema_conflict::{SchemaConflict, SchemaConflictKind};
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::read;

/// The maximum number of dirty rows that are processed together, which bounds memory.
const CHUNK_COUNT_MAX: usize = 10_000;

/// The result of materializing.
pub(crate) struct MaterializeOutcome {
    /// Tables that stay unchanged; their rows wait for the next time.
    pub(crate) unwritable: Vec<SchemaConflict>,
    /// Pairs of equal rows of which only one can be visible.
    pub(crate) equal: Vec<EqualRows>,
}

/// A new row of this device and another device's row that are equal except for their keys, and
/// share a value that must be unique.
pub(crate) struct EqualRows {
    pub(crate) own: RowId,
    pub(crate) other: RowId,
}

/// Makes the tables follow the row states. `progress` receives the number of finished rows.
pub(crate) fn materialize(
    db: &Connection,
    tables: Vec<TrackedTable>,
    progress: impl FnMut(u64),
) -> Result<MaterializeOutcome> {
    let (tables, unwritable) = writable(db, tables)?;
    let own_effects = tables.iter().map(|table| triggers::has_foreign_triggers(db, table));
    // The user's own triggers fire for data that they keep outside the tracked tables (a search
    // index, a cache). Their effects on tracked tables arrived as messages, and are undone below.
    let fire = own_effects.collect::<Result<Vec<_>>>()?.contains(&true);
    let mut materializer = Materializer {
        db,
        tables: &tables,
        names: NameResolver::new(db)?,
        to_hide: Vec::new(),
        check_parents_of: VecDeque::new(),
        maybe_resurrected: Vec::new(),
        largest_keys: HashMap::new(),
        equal: Vec::new(),
    };
    materializer.remove_resurrected()?;
    set_triggers(db, fire)?;
    materializer.hide_others()?;
    materializer.apply_dirty_rows(progress)?;
    set_triggers(db, false)?;
    materializer.retry_hiding()?;
    if fire {
        materializer.undo_trigger_effects()?;
    }
    materializer.decide_hidden_rows()?;
    materializer.resurrect_parents()?;
    materializer.clear_dirty_rows()?;
    materializer.raise_sequences()?;
    Ok(MaterializeOutcome { unwritable, equal: materializer.equal })
}

/// Splits the tables into those that rows can be written to and deleted from, and the others.
fn writable(
    db: &Connection,
    tables: Vec<TrackedTable>,
) -> Result<(Vec<TrackedTable>, Vec<SchemaConflict>)> {
    let (mut can, mut cannot) = (Vec::with_capacity(tables.len()), Vec::new());
    for table in tables {
        match row_writer::why_not_writable(db, &table)? {
            None => can.push(table),
            Some(reason) => {
                let kind = SchemaConflictKind::Unwritable;
                cannot.push(SchemaConflict { table: table.name, kind, reason });
            }
        }
    }
    Ok((can, cannot))
}

struct Materializer<'a> {
    db: &'a Connection,
    tables: &'a [TrackedTable],
    names: NameResolver<'a>,
    /// Dead rows whose deletion the user's triggers prevented.
    to_hide: Vec<RowId>,
    /// Visible rows whose parents must still be checked.
    check_parents_of: VecDeque<RowId>,
    /// Dead rows that a visible row may refer to.
    maybe_resurrected: Vec<RowId>,
    /// The largest key of the rows that changed on other devices, by table.
    largest_keys: HashMap<i64, i64>,
    equal: Vec<EqualRows>,
}

impl<'a> Materializer<'a> {
    fn table(&self, id: i64) -> Option<&'a TrackedTable> {
        self.tables.iter().find(|table| table.id == id)
    }

    fn table_by_name(&self, name: &str) -> Option<&'a TrackedTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Removes the rows that are in a table under the keys of others.
    fn hide_others(&mut self) -> Result<()> {
        self.for_each_dirty_row(UNDER_OTHER, |materializer, id| {
            match materializer.table(id.table) {
                Some(table) => materializer.hide(table, id),
                None => Ok(()),
            }
        })?;
        let sql =
            "UPDATE warren_dirty_row SET from_remote = 1 WHERE from_remote = ?1 AND table_id = ?2";
        let mut statement = self.db.prepare_cached(sql)?;
        for table in self.tables {
            statement.execute((UNDER_OTHER, table.id))?;
        }
        Ok(())
    }

    fn apply_dirty_rows(&mut self, mut progress: impl FnMut(u64)) -> Result<()> {
        let mut done = 0_usize;
        self.for_each_dirty_row(1, |materializer, id| {
            materializer.apply_row_state(id)?;
            materializer.note_key(id)?;
            done += 1;
            if done.is_multiple_of(PROGRESS_EVERY) {
                progress(done as u64);
            }
            Ok(())
        })
    }

    /// Visits the rows with this `warren_dirty_row.from_remote`, a chunk at a time.
    fn for_each_dirty_row(
        &mut self,
        from_remote: i64,
        mut visit: impl FnMut(&mut Self, &RowId) -> Result<()>,
    ) -> Result<()> {
        let mut after = RowId { table: i64::MIN, key: Vec::new() };
        loop {
            let chunk = self.dirty_rows_after(&after, from_remote)?;
            let Some(last) = chunk.last() else { return Ok(()) };
            after = last.clone();
            for id in &chunk {
                visit(self, id)?;
            }
        }
    }

    fn dirty_rows_after(&self, after: &RowId, from_remote: i64) -> Result<Vec<RowId>> {
        let sql = format!(
            "SELECT table_id, key FROM warren_dirty_row
             WHERE (table_id, key) > (?1, ?2) AND from_remote = ?3
             ORDER BY table_id, key LIMIT {CHUNK_COUNT_MAX}"
        );
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map((after.table, &after.key, from_remote), |row| {
            Ok(RowId { table: row.get(0)?, key: row.get(1)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Clears the dirty rows, except those of tables that were left unchanged, which still wait.
    fn clear_dirty_rows(&self) -> Result<()> {
        let sql = "DELETE FROM warren_dirty_row WHERE table_id = ?1
                   OR NOT EXISTS (SELECT 1 FROM warren_table WHERE id = table_id AND tracked)";
        let mut statement = self.db.prepare_cached(sql)?;
        for table in self.tables {
            statement.execute([table.id])?;
        }
        Ok(())
    }

    fn note_key(&mut self, id: &RowId) -> Result<()> {
        let Some(table) = self.table(id.table).filter(|table| table.autoincrement) else {
            return Ok(());
        };
        if let [Value::Integer(key)] = id.key_values()?[..] {
            let largest = self.largest_keys.entry(table.id).or_insert(key);
            *largest = key.max(*largest);
        }
        Ok(())
    }

    /// Raises sequences, so that SQLite does not assign the key of a known row that was never in
    /// the table.
    fn raise_sequences(&self) -> Result<()> {
        for (table, key) in &self.largest_keys {
            if let Some(table) = self.table(*table) {
                raise_sequence(self.db, table, *key)?;
            }
        }
        Ok(())
    }

    /// Writes a live row to the table, or removes a dead one.
    fn apply_row_state(&mut self, id: &RowId) -> Result<()> {
        let Some(table) = self.table(id.table) else { return Ok(()) };
        let row = row_state::load(self.db, id)?.unwrap_or_default();
        if !row.is_live() {
            visibility_override::clear(self.db, id)?;
            self.maybe_resurrected.push(id.clone());
            return self.hide(table, id);
        }
        let values = match RowValues::load(&mut self.names, table, id, &row)? {
            Ok(values) => values,
            Err(unfit) => {
                self.hide(table, id)?;
                return visibility_override::set(self.db, id, &unfit);
            }
        };
        match row_writer::upsert_row(self.db, table, &values)? {
            WriteOutcome::Written => {
                visibility_override::clear(self.db, id)?;
                self.record_missing_parents(table, id, &values)
            }
            WriteOutcome::Rejected(reason) => {
                // An older version of the row may still be in the table, but is not its state.
                self.hide(table, id)?;
                visibility_override::set(
                    self.db,
                    id,
                    &VisibilityOverride::new(VisibilityOverrideKind::Constraint, reason),
                )
            }
        }
    }

    /// Removes a row from the table, or records that a user's trigger prevents it.
    fn hide(&mut self, table: &TrackedTable, id: &RowId) -> Result<()> {
        if let WriteOutcome::Rejected(_) = row_writer::delete_row(self.db, table, id)? {
            self.to_hide.push(id.clone());
        }
        Ok(())
    }

    /// Removes the rows whose deletion a trigger prevented; triggers no longer fire.
    fn retry_hiding(&mut self) -> Result<()> {
        for id in std::mem::take(&mut self.to_hide) {
            if let Some(table) = self.table(id.table) {
                row_writer::delete_row(self.db, table, &id)?;
            }
        }
        Ok(())
    }

    /// Records the row if a parent is missing. The parent may be written later, or be dead, so the
    /// check follows at the end.
    fn record_missing_parents(
        &mut self,
        table: &TrackedTable,
        id: &RowId,
        values: &RowValues<'_>,
    ) -> Result<()> {
        for key in &table.foreign_keys {
            if self.missing_parent(key, values)?.is_some() {
                self.check_parents_of.push_back(id.clone());
                break;
            }
        }
        Ok(())
    }

    /// Restores the state's values of rows that the capture triggers recorded since: the user's
    /// triggers (or this module) changed them.
    fn undo_trigger_effects(&mut self) -> Result<()> {
        for table in self.tables {
            let sql = format!(
                "SELECT DISTINCT {} FROM warren_outbox WHERE table_id = ?1",
                triggers::outbox_key_columns(table)
            );
            let mut statement = self.db.prepare(&sql)?;
            let keys = statement.query_map([table.id], |row| read(row, 0, table.key.len()))?;
            for key in keys.collect::<rusqlite::Result<Vec<_>>>()? {
                self.apply_row_state(&RowId::new(table.id, &key))?;
            }
        }
        self.db.execute("DELETE FROM warren_outbox", [])?;
        Ok(())
    }
}
