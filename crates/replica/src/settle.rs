//! Settling: makes the visible tables follow the state, constraints included.
//!
//! ```text
//! 1 show    every unsettled row: live → its newest values, dead → out
//! 2 held    rows that a constraint refused: of those that collide on a UNIQUE index, the one with
//!           the newest write is visible; the others wait, and are tried again each time
//! 3 kept    dead rows that a visible row refers to by a foreign key are visible all the same
//! ```
//!
//! # Invariants
//! - The result depends on the set of messages alone, not on when or in which portions they came:
//!   *held* is the greedy choice by newest write, which is unique, since a held row collides with a
//!   visible row of a newer write, and visible rows do not collide; *kept* is the least fixed point
//!   of "referred to by a visible row".
//! - Foreign keys are not enforced while settling (messages arrive in any order); afterwards none
//!   is violated, unless the parent is not known here at all, is held, or is referred to by columns
//!   that are not its primary key.

use std::collections::VecDeque;

use crdt::{Row, Value};
use rusqlite::Connection;

use crate::capture;
use crate::error::Result;
use crate::rules::set_triggers;
use crate::show::{self, Shown, Values};
use crate::state::{self, Names, RowId};
use crate::table::{ForeignKey, Table, references};
use crate::value::read;

/// Unsettled rows that are looked at together: bounds memory.
const CHUNK_COUNT_MAX: usize = 10_000;

/// Rows between two words about how far it is.
const PROGRESS_EVERY: u64 = 1_000;

/// Makes the tables follow the state. `progress` hears how many rows are done.
pub(crate) fn settle(db: &Connection, tables: &[Table], progress: impl FnMut(u64)) -> Result<()> {
    let mut settler = Settler {
        db,
        tables,
        names: Names::new(db)?,
        look_again: VecDeque::new(),
        dead: Vec::new(),
    };
    let own_effects = tables.iter().map(|table| capture::has_foreign_triggers(db, table));
    // The user's own triggers fire for what they keep outside the tracked tables (a search index,
    // a cache); what they do to tracked tables came as messages already, and is undone below.
    let fire = own_effects.collect::<Result<Vec<_>>>()?.contains(&true);
    settler.take_out_kept()?;
    set_triggers(db, fire)?;
    settler.show_unsettled(progress)?;
    set_triggers(db, false)?;
    if fire {
        settler.undo_trigger_effects()?;
    }
    settler.settle_held()?;
    settler.settle_kept()?;
    db.execute("DELETE FROM warren_unsettled", [])?;
    Ok(())
}

struct Settler<'a> {
    db: &'a Connection,
    tables: &'a [Table],
    names: Names<'a>,
    /// Visible rows whose parents are still to be looked for.
    look_again: VecDeque<RowId>,
    /// Dead rows that something visible may refer to.
    dead: Vec<RowId>,
}

impl<'a> Settler<'a> {
    fn table(&self, id: i64) -> Option<&'a Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    fn table_by_name(&self, name: &str) -> Option<&'a Table> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    fn show_unsettled(&mut self, mut progress: impl FnMut(u64)) -> Result<()> {
        let mut done = 0;
        self.for_each_unsettled(true, |settler, id| {
            settler.follow_state(id)?;
            done += 1;
            if done % PROGRESS_EVERY == 0 {
                progress(done);
            }
            Ok(())
        })
    }

    /// Visits the rows that changed elsewhere (`remote`) or here, a chunk at a time.
    fn for_each_unsettled(
        &mut self,
        remote: bool,
        mut visit: impl FnMut(&mut Self, &RowId) -> Result<()>,
    ) -> Result<()> {
        let mut after = RowId { table: i64::MIN, key: Vec::new() };
        loop {
            let chunk = self.unsettled(&after, remote)?;
            let Some(last) = chunk.last() else { return Ok(()) };
            after = last.clone();
            for id in &chunk {
                visit(self, id)?;
            }
        }
    }

    fn unsettled(&self, after: &RowId, remote: bool) -> Result<Vec<RowId>> {
        let sql = format!(
            "SELECT table_id, key FROM warren_unsettled
             WHERE (table_id, key) > (?1, ?2) AND remote = ?3
             ORDER BY table_id, key LIMIT {CHUNK_COUNT_MAX}"
        );
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows = statement.query_map((after.table, &after.key, remote), |row| {
            Ok(RowId { table: row.get(0)?, key: row.get(1)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Shows a live row, takes a dead one out.
    fn follow_state(&mut self, id: &RowId) -> Result<()> {
        let Some(table) = self.table(id.table) else { return Ok(()) };
        let row = state::load(self.db, id)?.unwrap_or_default();
        if !row.is_live() {
            self.except(id, None)?;
            self.dead.push(id.clone());
            return show::hide(self.db, table, id);
        }
        let values = Values::load(&mut self.names, table, id, &row)?;
        match show::show(self.db, table, &values)? {
            Shown::Yes => {
                self.except(id, None)?;
                self.note_missing_parents(table, id, &values)
            }
            Shown::Refused(reason) => {
                // An older version of the row may be there still; it is not what the row is.
                show::hide(self.db, table, id)?;
                self.except(id, Some(Exception::Held(reason)))
            }
        }
    }

    /// A parent that is not there may be shown later, or be dead: looked for at the end.
    fn note_missing_parents(
        &mut self,
        table: &Table,
        id: &RowId,
        values: &Values<'_>,
    ) -> Result<()> {
        for key in &table.foreign_keys {
            let Some(parent) = self.table_by_name(&key.parent) else { continue };
            let Some(tuple) = values.tuple(&key.columns) else { continue };
            if !show::exists(self.db, parent, &key.parent_columns, &tuple)? {
                self.look_again.push_back(id.clone());
                break;
            }
        }
        Ok(())
    }

    /// Rows that the capture triggers noted meanwhile were touched by the user's triggers (or by
    /// us): they get their state's values back.
    fn undo_trigger_effects(&mut self) -> Result<()> {
        for table in self.tables {
            let places: Vec<_> = (1..=table.key.len()).map(|place| format!("k{place}")).collect();
            let sql = format!(
                "SELECT DISTINCT {} FROM warren_outbox WHERE table_id = ?1",
                places.join(", ")
            );
            let mut statement = self.db.prepare(&sql)?;
            let keys = statement.query_map([table.id], |row| read(row, 0, table.key.len()))?;
            for key in keys.collect::<rusqlite::Result<Vec<_>>>()? {
                self.follow_state(&RowId::new(table.id, &key))?;
            }
        }
        self.db.execute("DELETE FROM warren_outbox", [])?;
        Ok(())
    }

    /// Tries held rows again, newest write first, until nothing changes.
    fn settle_held(&mut self) -> Result<()> {
        loop {
            let mut held = Vec::new();
            for id in self.exceptions(true)? {
                let row = state::load(self.db, &id)?.unwrap_or_default();
                held.push((row.written(), id, row));
            }
            held.sort_by_key(|(written, ..)| std::cmp::Reverse(*written));
            let mut changed = false;
            for (_, id, row) in held {
                changed |= self.retry(&id, &row)?;
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Shows a held row if nothing newer stands in its way; what is older gives way, and is held.
    fn retry(&mut self, id: &RowId, row: &Row) -> Result<bool> {
        let Some(table) = self.table(id.table).filter(|_| row.is_live()) else {
            self.except(id, None)?;
            return Ok(false);
        };
        let values = Values::load(&mut self.names, table, id, row)?;
        let mut rivals = Vec::new();
        for unique in &table.uniques {
            let Some(tuple) = values.tuple(unique) else { continue };
            rivals.extend(show::find(self.db, table, unique, &tuple)?);
        }
        rivals.retain(|rival| rival != id);
        for rival in &rivals {
            let newer = state::load(self.db, rival)?.unwrap_or_default().written() > row.written();
            if newer {
                return Ok(false);
            }
        }
        for rival in &rivals {
            show::hide(self.db, table, rival)?;
            let reason = format!("a row with a newer write has the same value in {}", table.name);
            self.except(rival, Some(Exception::Held(reason)))?;
        }
        match show::show(self.db, table, &values)? {
            Shown::Yes => {
                self.except(id, None)?;
                self.look_again.push_back(id.clone());
                Ok(true)
            }
            Shown::Refused(_) => Ok(!rivals.is_empty()),
        }
    }

    /// Takes out the rows that were only kept: whether they still are depends on what is shown now.
    fn take_out_kept(&mut self) -> Result<()> {
        for id in self.exceptions(false)? {
            let row = state::load(self.db, &id)?.unwrap_or_default();
            self.except(&id, None)?;
            if let Some(table) = self.table(id.table).filter(|_| !row.is_live()) {
                show::hide(self.db, table, &id)?;
                self.dead.push(id);
            }
        }
        Ok(())
    }

    /// Brings back the dead rows that visible rows refer to, and what those refer to.
    fn settle_kept(&mut self) -> Result<()> {
        self.for_each_unsettled(false, |settler, id| {
            if state::load(settler.db, id)?.is_some_and(|row| row.is_live()) {
                settler.look_again.push_back(id.clone());
            } else {
                settler.dead.push(id.clone());
            }
            Ok(())
        })?;
        for id in std::mem::take(&mut self.dead) {
            let row = state::load(self.db, &id)?.unwrap_or_default();
            if self.is_referred_to(&id, &row)? {
                self.keep(&id, &row)?;
            }
        }
        while let Some(id) = self.look_again.pop_front() {
            self.look_for_parents(&id)?;
        }
        Ok(())
    }

    fn is_referred_to(&mut self, id: &RowId, row: &Row) -> Result<bool> {
        let Some(table) = self.table(id.table) else { return Ok(false) };
        if references(self.tables, table).next().is_none() {
            return Ok(false);
        }
        let values = Values::load(&mut self.names, table, id, row)?;
        for (child, key) in references(self.tables, table) {
            let Some(tuple) = values.tuple(&key.parent_columns) else { continue };
            if show::exists(self.db, child, &key.columns, &tuple)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps every parent of a visible row that is known here, dead, and not visible.
    fn look_for_parents(&mut self, id: &RowId) -> Result<()> {
        let Some(table) = self.table(id.table).filter(|table| !table.foreign_keys.is_empty())
        else {
            return Ok(());
        };
        if !show::is_shown(self.db, table, id)? {
            return Ok(());
        }
        let row = state::load(self.db, id)?.unwrap_or_default();
        let values = Values::load(&mut self.names, table, id, &row)?;
        for key in &table.foreign_keys {
            let Some(tuple) = values.tuple(&key.columns) else { continue };
            self.keep_parent(key, &tuple)?;
        }
        Ok(())
    }

    fn keep_parent(&mut self, key: &ForeignKey, tuple: &[Value]) -> Result<()> {
        let Some(parent) = self.table_by_name(&key.parent) else { return Ok(()) };
        let is_key = parent.key.len() == key.parent_columns.len()
            && parent.key.iter().zip(&key.parent_columns).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_key || show::exists(self.db, parent, &key.parent_columns, tuple)? {
            return Ok(());
        }
        let id = RowId::new(parent.id, tuple);
        match state::load(self.db, &id)? {
            Some(row) if !row.is_live() => self.keep(&id, &row),
            _ => Ok(()),
        }
    }

    fn keep(&mut self, id: &RowId, row: &Row) -> Result<()> {
        let Some(table) = self.table(id.table) else { return Ok(()) };
        let values = Values::load(&mut self.names, table, id, row)?;
        if let Shown::Yes = show::show(self.db, table, &values)? {
            self.except(id, Some(Exception::Kept))?;
            self.look_again.push_back(id.clone());
        }
        Ok(())
    }

    fn exceptions(&self, held: bool) -> Result<Vec<RowId>> {
        let sql = "SELECT table_id, key FROM warren_exception WHERE held = ?1";
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement
            .query_map([held], |row| Ok(RowId { table: row.get(0)?, key: row.get(1)? }))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn except(&self, id: &RowId, exception: Option<Exception>) -> Result<()> {
        let Some(exception) = exception else {
            let sql = "DELETE FROM warren_exception WHERE table_id = ?1 AND key = ?2";
            self.db.prepare_cached(sql)?.execute((id.table, &id.key))?;
            return Ok(());
        };
        let (held, reason) = match exception {
            Exception::Held(reason) => (true, reason),
            Exception::Kept => (false, "another row refers to it".to_owned()),
        };
        let sql = "INSERT OR REPLACE INTO warren_exception VALUES (?1, ?2, ?3, ?4)";
        self.db.prepare_cached(sql)?.execute((id.table, &id.key, held, reason))?;
        Ok(())
    }
}

/// Why a row's visibility is not its liveness.
enum Exception {
    Held(String),
    Kept,
}

/// Marks every known row of a table, so that the next settling shows it.
pub(crate) fn unsettle_table(db: &Connection, table: i64) -> Result<()> {
    let sql = "INSERT INTO warren_unsettled SELECT table_id, key, 1 FROM warren_row
               WHERE table_id = ?1 ON CONFLICT (table_id, key) DO UPDATE SET remote = 1";
    db.execute(sql, [table])?;
    Ok(())
}
