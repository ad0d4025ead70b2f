//! Compares a table with the row states if its triggers were missing: differences are changes from
//! that time, and are added to the outbox as if a trigger had recorded them.
//!
//! # Invariants
//! - A dirty row from another device is in the table in its previous form, or not at all. A value
//!   from a message, the column's default, or a value that a migration wrote to every row does not
//!   count as an edit of its cells, and such a row does not count as deleted.
//! - A deleted row that is visible because others refer to it does not count as new.
//! - A cell that was never written holds its column's default.

use std::collections::{BTreeMap, BTreeSet};

use crdt::{Change, RowState, Value};
use rusqlite::Connection;
use sqlite_schema::quote_identifier;

use super::for_each_row;
use crate::apply::row_state::{self, NameResolver};
use crate::apply::visibility_override::{self, VisibilityOverrideKind};
use crate::capture::triggers::{self, NEXT_KEY_AUTO_ASSIGNED};
use crate::error::Result;
use crate::log::message_log::MessageLog;
use crate::log::value_chunks;
use crate::row_id::RowId;
use crate::schema::tracked_table::{self, CapturedColumn, DeclaredTable, TrackedTable};

/// Adds the differences of a table that lost no columns to the outbox, with this time (milliseconds
/// since 1970).
pub(crate) fn insert_pending_differences(
    db: &Connection,
    table: &TrackedTable,
    at_ms: u64,
) -> Result<()> {
    let (mut resurrected, mut held) = (BTreeSet::new(), BTreeSet::new());
    for (id, kind) in
        visibility_override::all(db)?.into_iter().filter(|(id, _)| id.table == table.id)
    {
        match kind {
            VisibilityOverrideKind::Resurrected => drop(resurrected.insert(id)),
            kind if kind.hides_live_row() => drop(held.insert(id)),
            _ => {}
        }
    }
    let mut comparison = TableDiff {
        db,
        table,
        at_ms,
        names: NameResolver::new(db)?,
        resurrected,
        hidden: held,
        uncertain: BTreeMap::new(),
    };
    let at_default = at_default(db, table)?;
    for_each_row(db, table, &at_default, |key, values, at_default| {
        comparison.compare(key, &values, &at_default)
    })?;
    comparison.insert_uncertain_rows()?;
    comparison.insert_pending_deletes()
}

/// Returns an SQL condition for each captured column that it holds its default.
fn at_default(db: &Connection, table: &TrackedTable) -> Result<Vec<String>> {
    let declared = DeclaredTable::read(db, &table.name)?;
    let declared: Vec<_> = declared.iter().flat_map(DeclaredTable::captured).collect();
    let of = |column: &CapturedColumn| {
        let found = declared.iter().find(|declared| declared.name == column.name);
        let found = found.expect("no column went away");
        format!("{} IS ({})", quote_identifier(&column.name), found.default_sql())
    };
    Ok(table.columns.iter().map(of).collect())
}

struct TableDiff<'a> {
    db: &'a Connection,
    table: &'a TrackedTable,
    at_ms: u64,
    names: NameResolver<'a>,
    /// Deleted rows that are visible.
    resurrected: BTreeSet<RowId>,
    /// Hidden rows: a row in the table under such a key is another one.
    hidden: BTreeSet<RowId>,
    /// Dirty rows that differ from their row state, by their encoded keys.
    uncertain: BTreeMap<Vec<u8>, UncertainRow>,
}

/// A row whose cells may hold the value of an earlier message, or a later edit.
struct UncertainRow {
    key: Vec<Value>,
    /// The positions and values of the cells that differ from the row state.
    cells: Vec<(usize, Value)>,
}

impl TableDiff<'_> {
    fn compare(&mut self, key: Vec<Value>, values: &[Value], at_default: &[Value]) -> Result<()> {
        let id = RowId::new(self.table.id, &key);
        let waits = row_state::waits(self.db, &id)?;
        let row = row_state::load(self.db, &id)?;
        let is_visible = |row: &RowState| {
            if row.is_live() { !self.hidden.contains(&id) } else { self.resurrected.contains(&id) }
        };
        let row = row.filter(|row| waits || is_visible(row));
        let Some(row) = row else { return self.insert_pending_row(&key) };
        let is_default = |position: usize| at_default[position] == Value::Integer(1);
        let differing = self.differing(&row, values, is_default)?;
        if waits {
            let is_fill = |position: usize| {
                let fill = self.table.columns[position].fill.as_ref();
                fill.is_some_and(|fill| value_chunks::is_same_value(&values[position], fill))
            };
            let cells = differing.into_iter();
            let cells = cells.filter(|position| !is_default(*position) && !is_fill(*position));
            let cells: Vec<_> =
                cells.map(|position| (position, values[position].clone())).collect();
            if !cells.is_empty() {
                self.uncertain.insert(id.key, UncertainRow { key, cells });
            }
        } else if !differing.is_empty() {
            self.insert_pending_cells(&key, &differing)?;
        }
        Ok(())
    }

    /// Returns the positions of the captured columns whose values differ from the row state.
    fn differing(
        &mut self,
        row: &RowState,
        values: &[Value],
        is_default: impl Fn(usize) -> bool,
    ) -> Result<Vec<usize>> {
        let known = row_state::values(&mut self.names, row)?;
        let is_same = |position: usize| match known.get(&self.table.columns[position].id) {
            Some(known) => value_chunks::is_same_value(&values[position], known),
            None => is_default(position),
        };
        Ok((0..values.len()).filter(|position| !is_same(*position)).collect())
    }

    /// Adds those cells of dirty rows to the outbox whose values are in no message.
    fn insert_uncertain_rows(&mut self) -> Result<()> {
        if self.uncertain.is_empty() {
            return Ok(());
        }
        let mut doubtful = std::mem::take(&mut self.uncertain);
        MessageLog::open(self.db)?.for_each_change(|_, change| {
            let Change::Write { table, key, cells, .. } = &change else { return Ok(()) };
            if !table.eq_ignore_ascii_case(&self.table.name) {
                return Ok(());
            }
            if let Some(row) = doubtful.get_mut(&Value::encode_key(key)) {
                row.cells.retain(|(position, value)| {
                    let column = &self.table.columns[*position].name;
                    !cells.iter().any(|cell| {
                        cell.column.eq_ignore_ascii_case(column)
                            && value_chunks::is_same_value(value, &cell.value)
                    })
                });
            }
            Ok(())
        })?;
        for UncertainRow { key, cells } in doubtful.values().filter(|row| !row.cells.is_empty()) {
            let positions: Vec<_> = cells.iter().map(|(position, _)| *position).collect();
            self.insert_pending_cells(key, &positions)?;
        }
        Ok(())
    }

    fn insert_pending_row(&self, key: &[Value]) -> Result<()> {
        if self.table.has_auto_key {
            // The origin of the key is unknown. Two rows that should be one can be merged again,
            // but one that should be two cannot be split.
            self.insert_pending(key, NEXT_KEY_AUTO_ASSIGNED)?;
        }
        self.insert_pending(key, "*")
    }

    fn insert_pending_cells(&self, key: &[Value], differing: &[usize]) -> Result<()> {
        let positions = 0..self.table.columns.len();
        let mask = positions.map(|position| if differing.contains(&position) { '1' } else { '0' });
        self.insert_pending(key, &mask.collect::<String>())
    }

    /// Adds deletes for live rows that are missing in the table for no recorded reason.
    fn insert_pending_deletes(&self) -> Result<()> {
        let sql = "SELECT key FROM warren_row WHERE table_id = ?1 AND NOT EXISTS (
                       SELECT 1 FROM warren_visibility_override o
                       WHERE o.table_id = warren_row.table_id AND o.key = warren_row.key)";
        let mut statement = self.db.prepare(sql)?;
        let keys = statement.query_map([self.table.id], |row| row.get::<_, Vec<u8>>(0))?;
        for key in keys {
            let id = RowId { table: self.table.id, key: key? };
            let is_live = row_state::load(self.db, &id)?.is_some_and(|row| row.is_live());
            let is_missing = is_live && !row_state::waits(self.db, &id)?;
            if is_missing && !tracked_table::row_exists(self.db, self.table, &id)? {
                self.insert_pending(&id.key_values()?, "-")?;
            }
        }
        Ok(())
    }

    fn insert_pending(&self, key: &[Value], changed_columns: &str) -> Result<()> {
        triggers::add_note(self.db, self.table, key, changed_columns, self.at_ms)
    }
}
