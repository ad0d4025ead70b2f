//! Compares a table with the state where no trigger was there to note changes: what differs was
//! changed meanwhile, and goes to the outbox as if a trigger had noted it.
//!
//! # Invariants
//! - A row that waits to be shown stands in the table as it was before, or not at all. What a message
//!   says of a cell, the column's default, or what a migration wrote to every row is no edit of it
//!   then, and such a row was not deleted.
//! - A deleted row that is visible because others refer to it is no new row.
//! - A cell that nobody has written holds its column's default.

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

/// Notes what differs in a table of which nothing went away, with this time (milliseconds since 1970).
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

/// For each captured column, whether it holds its default, in SQL.
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
    /// Hidden rows: what the table has under such a key is another row.
    hidden: BTreeSet<RowId>,
    /// Rows that wait to be shown and are not as the state has them, by their encoded keys.
    uncertain: BTreeMap<Vec<u8>, UncertainRow>,
}

/// A row whose cells may hold what an earlier message said, or what somebody wrote since.
struct UncertainRow {
    key: Vec<Value>,
    /// The positions of cells that are not as the state has them, and what they hold.
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

    /// The positions of the captured columns whose values are not what the state says.
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

    /// Notes, of the rows that wait, the cells that hold what no message says of them.
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
            // Who gave the key is not known. Two rows that should be one can be put together
            // again, one that should be two cannot.
            self.insert_pending(key, NEXT_KEY_AUTO_ASSIGNED)?;
        }
        self.insert_pending(key, "*")
    }

    fn insert_pending_cells(&self, key: &[Value], differing: &[usize]) -> Result<()> {
        let positions = 0..self.table.columns.len();
        let mask = positions.map(|position| if differing.contains(&position) { '1' } else { '0' });
        self.insert_pending(key, &mask.collect::<String>())
    }

    /// Live rows that are not in the table, though nothing keeps them out of it.
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
