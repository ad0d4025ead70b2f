//! Merges two rows that mean the same: references to the hidden one are changed to the visible one,
//! and the hidden one is deleted, on all devices.
//!
//! All of this consists of messages, so references of hidden rows change, too, and the tables are
//! materialized as after a sync. Rows that thereby become equal, except for an auto key, are
//! merged, too.

use std::collections::BTreeSet;

use crdt::{CellWrite, Change, RowState, Timestamp, Value};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::dropped_references::{DroppedReference, dropped_references, load};
use super::{HiddenRow, HiddenRowMatch, SelectedHiddenRow, select_after_changes};
use crate::apply::row_state::{self, NameResolver};
use crate::apply::{materialize, row_writer, visibility_override};
use crate::capture::timestamping::{self, CorrectedClock};
use crate::error::{Error, Result};
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::references::{NewKeys, update_untracked_tables};
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::key_to_literals;

/// A hidden row that was merged into a visible one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MergedRow {
    /// The hidden row, which was removed.
    pub row: HiddenRow,
    /// The key of the remaining row, as SQL literals.
    pub into_key: String,
    /// The number of rows that referred to the removed row and now refer to the remaining one.
    pub moved_references_count: u64,
    /// The number of rows that the merge has hidden, because rows with moved references now have
    /// the same unique values as others.
    pub hidden_rows_count: u64,
}

impl Replica {
    /// Merges a hidden row into the visible row that it collides with. `id` may be shortened.
    ///
    /// # Errors
    /// [`Error::ConstraintViolated`], without any change, if it collides with no visible row, or if
    /// two different rows would get the same key.
    pub fn merge_hidden_row(&self, id: &str, now_ms: u64) -> Result<MergedRow> {
        self.transaction(|db| {
            let SelectedHiddenRow { found, tables, now } = select_after_changes(db, id, now_ms)?;
            let none = || refused("no visible row conflicts with it".into());
            let shown = found.rival.clone().ok_or_else(none)?;
            let before = hidden_rows(db)?;
            let mut merger = RowMerger { db, now, tables: &tables, followed: BTreeSet::new() };
            merger.merge(&found.id, &shown)?;
            let hidden_rows_count = hidden_rows(db)?.difference(&before).count() as u64;
            let moved_references_count = merger.followed.len() as u64;
            let into_key = key_to_literals(&shown.key_values()?);
            let HiddenRowMatch { row, .. } = found;
            Ok(MergedRow { row, into_key, moved_references_count, hidden_rows_count })
        })
    }
}

fn hidden_rows(db: &Connection) -> Result<BTreeSet<RowId>> {
    let held = visibility_override::all(db)?.into_iter().filter(|(_, kind)| kind.hides_live_row());
    Ok(held.map(|(row, _)| row).collect())
}

/// The number of times that a row may refer to the same one by different columns of its own key.
const ROUNDS_COUNT_MAX: u32 = 16;

struct RowMerger<'a> {
    db: &'a Connection,
    now: CorrectedClock,
    tables: &'a [TrackedTable],
    /// Rows that refer to another row than before.
    followed: BTreeSet<RowId>,
}

impl<'a> RowMerger<'a> {
    fn table(&self, id: &RowId) -> &'a TrackedTable {
        let table = self.tables.iter().find(|table| table.id == id.table);
        table.expect("its rows were found in one of them")
    }

    /// Changes references to `gone` into references to `stays`, and deletes `gone`.
    fn merge(&mut self, gone: &RowId, stays: &RowId) -> Result<()> {
        let table = self.table(gone);
        for round in 0.. {
            let endings = dropped_references(self.db, self.tables, gone, Some(stays))?;
            if endings.is_empty() {
                break;
            }
            if round == ROUNDS_COUNT_MAX {
                return Err(refused(format!(
                    "other rows still refer to the hidden row of {}",
                    table.name
                )));
            }
            for ending in &endings {
                self.repoint(ending)?;
            }
            self.materialize()?;
            self.merge_equal()?;
        }
        if let ([Value::Integer(from)], [Value::Integer(to)], true) =
            (&gone.key_values()?[..], &stays.key_values()?[..], table.has_auto_key)
        {
            let new_keys = NewKeys::from([(table.id, [(*from, *to)].into())]);
            update_untracked_tables(self.db, self.tables, &new_keys)?;
        }
        self.delete(gone)?;
        self.materialize()
    }

    /// Makes a row refer to the one that stays.
    fn repoint(&mut self, ending: &DroppedReference) -> Result<()> {
        let DroppedReference { row: id, columns, targets, instead } = ending;
        let Some(tuple) = instead else {
            let columns = targets.join(", ");
            return Err(refused(format!("the visible row has no value in {columns}")));
        };
        let table = self.table(id);
        let Some(row) = row_state::load(self.db, id)?.filter(RowState::is_live) else {
            // The row has another key by now, or is only resurrected.
            return Ok(());
        };
        let mut key = id.key_values()?;
        let (mut cells, mut names) = (Vec::new(), NameResolver::new(self.db)?);
        for (column, value) in columns.iter().zip(tuple) {
            let is_it = |name: &String| name.eq_ignore_ascii_case(column);
            if let Some(place) = table.key.iter().position(is_it) {
                key[place] = value.clone();
            } else {
                let replaced = row.cell(names.column(&table.name, column)?);
                cells.push(CellWrite { column: column.clone(), value: value.clone(), replaced });
            }
        }
        if !cells.is_empty() {
            let (table, key) = (table.name.clone(), id.key_values()?);
            self.add(&Change::Write { table, key, cells, replaced_tombstone: None })?;
        }
        let target = RowId::new(table.id, &key);
        if target != *id {
            self.rekey(id, &target)?;
        }
        self.followed.insert(target);
        Ok(())
    }

    /// Moves a row to another key.
    fn rekey(&mut self, id: &RowId, target: &RowId) -> Result<()> {
        let (table, mut names) = (self.table(id), NameResolver::new(self.db)?);
        let row = row_state::load(self.db, id)?.unwrap_or_default();
        let there = row_state::load(self.db, target)?;
        let values = row_state::values(&mut names, &row)?;
        if let Some(there) = there.as_ref().filter(|there| there.is_live()) {
            if row_state::values(&mut names, there)? != values {
                let key = key_to_literals(&target.key_values()?);
                return Err(refused(format!(
                    "{} ({key}) already exists with other values",
                    table.name
                )));
            }
        } else {
            let cells = table.columns.iter().filter_map(|column| {
                Some(CellWrite::new(&column.name, values.get(&column.id)?.clone()))
            });
            let deleted = there.map(|there| there.tombstone()).filter(|t| *t != Timestamp::ZERO);
            let (table, key) = (table.name.clone(), target.key_values()?);
            self.add(&Change::Write {
                table,
                key,
                cells: cells.collect(),
                replaced_tombstone: deleted,
            })?;
            self.materialize()?;
        }
        self.merge(id, target)
    }

    /// Merges hidden rows whose references changed with rows of equal values.
    fn merge_equal(&mut self) -> Result<()> {
        for id in hidden_rows(self.db)? {
            let Some(table) = self.tables.iter().find(|table| table.id == id.table) else {
                continue;
            };
            let Some(values) = load(self.db, table, &id)?.filter(|_| table.has_auto_key) else {
                continue;
            };
            let Some(rival) = row_writer::rival(self.db, table, &values)? else { continue };
            let follows = |row: &RowId| self.followed.contains(row);
            if (follows(&id) || follows(&rival)) && row_state::are_equal(self.db, &id, &rival)? {
                self.merge(&id, &rival)?;
            }
        }
        Ok(())
    }

    fn delete(&self, id: &RowId) -> Result<()> {
        super::delete(self.db, self.now, &self.table(id).name, id)
    }

    fn add(&self, change: &Change) -> Result<()> {
        timestamping::append_change(self.db, self.now, change)
    }

    fn materialize(&self) -> Result<()> {
        materialize::materialize(self.db, self.tables.to_vec(), |_| {}).map(drop)
    }
}

fn refused(reason: String) -> Error {
    Error::ConstraintViolated { reason }
}
