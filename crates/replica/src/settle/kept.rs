//! Which dead rows are visible, because others refer to them by a foreign key.
//!
//! First those that live rows refer to, then those that these refer to, and so on; of each round the
//! one with the newest write first. A row that does not fit beside what is visible already stays
//! out: it displaces nothing.

use std::collections::BTreeSet;

use crdt::{Row, Timestamp, Value};

use super::Settler;
use crate::error::Result;
use crate::exception::{self, Exception, Kind};
use crate::show::{self, Shown, Values};
use crate::state::{self, RowId};
use crate::table::{ForeignKey, references};

/// The dead rows of a round, by their newest writes.
type Round = BTreeSet<(Timestamp, RowId)>;

impl Settler<'_> {
    /// Takes out the rows that were only kept: whether they still are depends on what is shown now.
    pub(super) fn take_out_kept(&mut self) -> Result<()> {
        for (id, kind) in exception::all(self.db)? {
            if !Kind::OF_REFERENCES.contains(&kind) {
                continue;
            }
            let Some(table) = self.table(id.table) else { continue };
            exception::clear(self.db, &id)?;
            if !state::load(self.db, &id)?.unwrap_or_default().is_live() {
                show::hide(self.db, table, &id)?;
                self.dead.push(id);
            }
        }
        Ok(())
    }

    /// Brings back the dead rows that visible rows refer to, and what those refer to.
    pub(super) fn settle_kept(&mut self) -> Result<()> {
        self.for_each_unsettled(0, |settler, id| {
            if state::load(settler.db, id)?.is_some_and(|row| row.is_live()) {
                settler.look_again.push_back(id.clone());
            } else {
                settler.dead.push(id.clone());
            }
            Ok(())
        })?;
        let mut round = Round::new();
        for id in std::mem::take(&mut self.dead) {
            let row = state::load(self.db, &id)?.unwrap_or_default();
            if self.is_referred_to(&id, &row)? {
                round.insert((row.written(), id));
            }
        }
        for id in std::mem::take(&mut self.look_again) {
            self.add_dead_parents(&id, &mut round)?;
        }
        while !round.is_empty() {
            let mut next = Round::new();
            for (_, id) in round.into_iter().rev() {
                if self.keep(&id)? {
                    self.add_dead_parents(&id, &mut next)?;
                }
            }
            round = next;
        }
        Ok(())
    }

    fn is_referred_to(&mut self, id: &RowId, row: &Row) -> Result<bool> {
        let Some(table) = self.table(id.table) else { return Ok(false) };
        if references(self.tables, table).next().is_none() {
            return Ok(false);
        }
        let Ok(values) = Values::load(&mut self.names, table, id, row)? else { return Ok(false) };
        for (child, key) in references(self.tables, table) {
            let Some(tuple) = values.tuple(&key.parent_columns) else { continue };
            if show::exists(self.db, child, &key.columns, &tuple)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds every parent of a visible row that is known here, dead, and not visible.
    fn add_dead_parents(&mut self, id: &RowId, round: &mut Round) -> Result<()> {
        let Some(table) = self.table(id.table).filter(|table| !table.foreign_keys.is_empty())
        else {
            return Ok(());
        };
        if !show::is_shown(self.db, table, id)? {
            return Ok(());
        }
        let row = state::load(self.db, id)?.unwrap_or_default();
        let Ok(values) = Values::load(&mut self.names, table, id, &row)? else { return Ok(()) };
        for key in &table.foreign_keys {
            let Some(tuple) = values.tuple(&key.columns) else { continue };
            round.extend(self.dead_parent(key, &tuple)?);
        }
        Ok(())
    }

    fn dead_parent(&self, key: &ForeignKey, tuple: &[Value]) -> Result<Option<(Timestamp, RowId)>> {
        let Some(parent) = self.table_by_name(&key.parent) else { return Ok(None) };
        let is_key = parent.key.len() == key.parent_columns.len()
            && parent.key.iter().zip(&key.parent_columns).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_key || show::exists(self.db, parent, &key.parent_columns, tuple)? {
            return Ok(None);
        }
        let id = RowId::new(parent.id, tuple);
        let row = state::load(self.db, &id)?.filter(|row| !row.is_live());
        Ok(row.map(|row| (row.written(), id)))
    }

    /// Shows a dead row, if it fits; whether it does.
    fn keep(&mut self, id: &RowId) -> Result<bool> {
        let Some(table) = self.table(id.table) else { return Ok(false) };
        let row = state::load(self.db, id)?.unwrap_or_default();
        let Ok(values) = Values::load(&mut self.names, table, id, &row)? else { return Ok(false) };
        let shown = show::show(self.db, table, &values)?;
        let exception = match &shown {
            Shown::Yes => Exception::new(Kind::Kept, "another row refers to it"),
            Shown::Refused(why) => Exception::new(Kind::Missing, why.as_str()),
        };
        exception::set(self.db, id, &exception)?;
        Ok(matches!(shown, Shown::Yes))
    }
}
