//! Two rows that mean the same: what refers to the hidden one is made to refer to the visible one,
//! and the hidden one is deleted, on all devices.
//!
//! All of it is messages, so rows that are hidden themselves follow, too, and the tables are settled
//! as after a sync. Rows that come to be equal thereby, but for a key that SQLite counted, are joined
//! in their turn.

use std::collections::BTreeSet;

use crdt::{Cell, Change, Row, Timestamp, Value};
use rusqlite::Connection;

use super::{Found, HeldRow, Picked, pick_after_changes};
use crate::error::{Error, Result};
use crate::exception;
use crate::references::{NewKeys, follow_in_other_tables};
use crate::replica::Replica;
use crate::settle;
use crate::show::{self, Values};
use crate::stamp::{self, Now};
use crate::state::{self, Names, RowId};
use crate::table::{Table, references};
use crate::value::literals;

/// A hidden row that was joined with a visible one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedRow {
    /// The row that is gone.
    pub row: HeldRow,
    /// The key of the row that stays, as SQL literals.
    pub into: String,
    /// Rows that referred to the first and refer to the second now.
    pub followed: u64,
    /// Rows that are held back now, since one that followed has the same value.
    pub held: u64,
}

impl Replica {
    /// Joins a row that is held back with the visible row that has its place. `id` may be shortened.
    ///
    /// [`Error::NotRestored`], and nothing changes: no visible row has its place, or two rows would
    /// get one key that are not equal.
    pub fn join(&self, id: &str, now_ms: u64) -> Result<JoinedRow> {
        self.transaction(|db| {
            let Picked { found, tables, now } = pick_after_changes(db, id, now_ms)?;
            let none = || refused("no row that is shown is in its place".into());
            let shown = found.rival.clone().ok_or_else(none)?;
            let before = held_back(db)?;
            let mut joiner = Joiner { db, now, tables: &tables, followed: BTreeSet::new() };
            joiner.join(&found.id, &shown)?;
            let held = held_back(db)?.difference(&before).count() as u64;
            let followed = joiner.followed.len() as u64;
            let into = literals(&shown.key_values()?);
            let Found { row, .. } = found;
            Ok(JoinedRow { row, into, followed, held })
        })
    }
}

/// A reference that a row takes with it when it goes.
pub(super) struct Ending {
    row: RowId,
    columns: Vec<String>,
    /// The columns of the row that goes.
    targets: Vec<String>,
    /// What the row that stays has in them.
    instead: Option<Vec<Value>>,
}

/// The references of other rows that are visible, or held back, to a row `gone` that are none to
/// `stays` as well.
pub(super) fn endings(
    db: &Connection,
    tables: &[Table],
    gone: &RowId,
    stays: Option<&RowId>,
) -> Result<Vec<Ending>> {
    let Some(table) = tables.iter().find(|table| table.id == gone.table) else {
        return Ok(Vec::new());
    };
    let Some(parent) = load(db, table, gone)? else { return Ok(Vec::new()) };
    let stays = stays.map(|row| load(db, table, row)).transpose()?.flatten();
    let exceptions = exception::all(db)?;
    let mut found = Vec::new();
    for (child, key) in references(tables, table) {
        let Some(tuple) = parent.tuple(&key.parent_columns) else { continue };
        let instead = stays.as_ref().and_then(|stays| stays.tuple(&key.parent_columns));
        if instead.as_ref() == Some(&tuple) {
            continue;
        }
        let mut rows = show::rows_with(db, child, &key.columns, &tuple)?;
        let held = exceptions.iter().filter(|(row, kind)| row.table == child.id && kind.is_held());
        for (row, _) in held {
            let values = load(db, child, row)?;
            if values.and_then(|values| values.tuple(&key.columns)).as_ref() == Some(&tuple) {
                rows.push(row.clone());
            }
        }
        let (columns, targets) = (&key.columns, &key.parent_columns);
        found.extend(rows.into_iter().filter(|row| row != gone).map(|row| Ending {
            row,
            columns: columns.clone(),
            targets: targets.clone(),
            instead: instead.clone(),
        }));
    }
    Ok(found)
}

fn held_back(db: &Connection) -> Result<BTreeSet<RowId>> {
    let held = exception::all(db)?.into_iter().filter(|(_, kind)| kind.is_held());
    Ok(held.map(|(row, _)| row).collect())
}

/// The row's values; `None` if the table cannot have them.
fn load<'a>(db: &Connection, table: &'a Table, id: &RowId) -> Result<Option<Values<'a>>> {
    let row = state::load(db, id)?.unwrap_or_default();
    Ok(Values::load(&mut Names::new(db)?, table, id, &row)?.ok())
}

/// How often a row may refer to the same one by different columns of its own key.
const ROUNDS_COUNT_MAX: u32 = 16;

struct Joiner<'a> {
    db: &'a Connection,
    now: Now,
    tables: &'a [Table],
    /// Rows that refer to another row than before.
    followed: BTreeSet<RowId>,
}

impl<'a> Joiner<'a> {
    fn table(&self, id: &RowId) -> &'a Table {
        let table = self.tables.iter().find(|table| table.id == id.table);
        table.expect("its rows were found in one of them")
    }

    /// Points what refers to `gone` to `stays`, and deletes it.
    fn join(&mut self, gone: &RowId, stays: &RowId) -> Result<()> {
        let table = self.table(gone);
        for round in 0.. {
            let endings = endings(self.db, self.tables, gone, Some(stays))?;
            if endings.is_empty() {
                break;
            }
            if round == ROUNDS_COUNT_MAX {
                return Err(refused(format!("rows still refer to the one of {}", table.name)));
            }
            for ending in &endings {
                self.point(ending)?;
            }
            self.settle()?;
            self.join_equal()?;
        }
        if let ([Value::Integer(from)], [Value::Integer(to)], true) =
            (&gone.key_values()?[..], &stays.key_values()?[..], table.counts)
        {
            let new_keys = NewKeys::from([(table.id, [(*from, *to)].into())]);
            follow_in_other_tables(self.db, self.tables, &new_keys)?;
        }
        self.delete(gone)?;
        self.settle()
    }

    /// Makes a row refer to the one that stays.
    fn point(&mut self, ending: &Ending) -> Result<()> {
        let Ending { row: id, columns, targets, instead } = ending;
        let Some(tuple) = instead else {
            let columns = targets.join(", ");
            return Err(refused(format!("the row that is shown has no value in {columns}")));
        };
        let table = self.table(id);
        let Some(row) = state::load(self.db, id)?.filter(Row::is_live) else {
            // It has another key by now, or is kept for others.
            return Ok(());
        };
        let mut key = id.key_values()?;
        let (mut cells, mut names) = (Vec::new(), Names::new(self.db)?);
        for (column, value) in columns.iter().zip(tuple) {
            let is_it = |name: &String| name.eq_ignore_ascii_case(column);
            if let Some(place) = table.key.iter().position(is_it) {
                key[place] = value.clone();
            } else {
                let replaced = row.cell(names.column(&table.name, column)?);
                cells.push(Cell { column: column.clone(), value: value.clone(), replaced });
            }
        }
        if !cells.is_empty() {
            let (table, key) = (table.name.clone(), id.key_values()?);
            self.add(&Change::Write { table, key, cells, deleted: None })?;
        }
        let target = RowId::new(table.id, &key);
        if target != *id {
            self.give_key(id, &target)?;
        }
        self.followed.insert(target);
        Ok(())
    }

    /// Makes a row's other key the name of what it holds.
    fn give_key(&mut self, id: &RowId, target: &RowId) -> Result<()> {
        let (table, mut names) = (self.table(id), Names::new(self.db)?);
        let row = state::load(self.db, id)?.unwrap_or_default();
        let there = state::load(self.db, target)?;
        let values = state::values(&mut names, &row)?;
        if let Some(there) = there.as_ref().filter(|there| there.is_live()) {
            if state::values(&mut names, there)? != values {
                let key = literals(&target.key_values()?);
                return Err(refused(format!(
                    "{} ({key}) is there already, with other values",
                    table.name
                )));
            }
        } else {
            let cells = table.columns.iter().filter_map(|column| {
                Some(Cell::new(&column.name, values.get(&column.id)?.clone()))
            });
            let deleted = there.map(|there| there.deleted()).filter(|t| *t != Timestamp::ZERO);
            let (table, key) = (table.name.clone(), target.key_values()?);
            self.add(&Change::Write { table, key, cells: cells.collect(), deleted })?;
            self.settle()?;
        }
        self.join(id, target)
    }

    /// Joins rows that followed with those that say the same.
    fn join_equal(&mut self) -> Result<()> {
        for id in held_back(self.db)? {
            let Some(table) = self.tables.iter().find(|table| table.id == id.table) else {
                continue;
            };
            let Some(values) = load(self.db, table, &id)?.filter(|_| table.counts) else {
                continue;
            };
            let Some(rival) = show::rival(self.db, table, &values)? else { continue };
            let follows = |row: &RowId| self.followed.contains(row);
            if (follows(&id) || follows(&rival)) && state::are_equal(self.db, &id, &rival)? {
                self.join(&id, &rival)?;
            }
        }
        Ok(())
    }

    fn delete(&self, id: &RowId) -> Result<()> {
        super::delete(self.db, self.now, &self.table(id).name, id)
    }

    fn add(&self, change: &Change) -> Result<()> {
        stamp::add(self.db, self.now, change)
    }

    fn settle(&self) -> Result<()> {
        settle::settle(self.db, self.tables.to_vec(), |_| {}).map(drop)
    }
}

fn refused(why: String) -> Error {
    Error::NotRestored { why }
}
