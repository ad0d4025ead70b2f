//! Decides which dead rows are visible because others refer to them by a foreign key.
//!
//! Only values that are stored exactly as a row's key count as references here. SQLite allows more:
//! 'A' may refer to 'a', '1' to 1, and a foreign key may name columns that are not the primary key.
//! A device would have to search all dead rows for those, so they resurrect no row, on any device.
//!
//! The rows that live rows refer to come first, then those that these refer to, and so on; in each
//! round the one with the newest write comes first. A row that conflicts with a visible row stays
//! hidden: it displaces nothing.

use std::collections::BTreeSet;

use crdt::Timestamp;
use sqlite_schema::ForeignKeySchema;

use super::Materializer;
use crate::apply::row_state;
use crate::apply::row_writer::{self, RowValues, WriteOutcome};
use crate::apply::visibility_override::{self, VisibilityOverride, VisibilityOverrideKind};
use crate::error::Result;
use crate::row_id::RowId;
use crate::schema::tracked_table::{self, TrackedTable, references};

/// The dead rows of a round, by their newest writes.
type ResurrectionRound = BTreeSet<(Timestamp, RowId)>;

impl Materializer<'_> {
    /// Removes the resurrected rows: whether they stay depends on the rows that are visible now.
    pub(super) fn remove_resurrected(&mut self) -> Result<()> {
        for (id, kind) in visibility_override::all(self.db)? {
            if !VisibilityOverrideKind::DEPENDENT_ON_REFERENCES.contains(&kind) {
                continue;
            }
            let Some(table) = self.table(id.table) else { continue };
            visibility_override::clear(self.db, &id)?;
            if !row_state::load(self.db, &id)?.unwrap_or_default().is_live() {
                row_writer::delete_row(self.db, table, &id)?;
                self.maybe_resurrected.push(id);
            }
        }
        Ok(())
    }

    /// Resurrects the dead rows that visible rows refer to, and those that these refer to.
    pub(super) fn resurrect_parents(&mut self) -> Result<()> {
        self.for_each_dirty_row(0, |materializer, id| {
            if row_state::load(materializer.db, id)?.is_some_and(|row| row.is_live()) {
                materializer.check_parents_of.push_back(id.clone());
            } else {
                materializer.maybe_resurrected.push(id.clone());
            }
            Ok(())
        })?;
        let mut round = ResurrectionRound::new();
        for id in std::mem::take(&mut self.maybe_resurrected) {
            if self.is_referred_to(&id)? {
                let row = row_state::load(self.db, &id)?.unwrap_or_default();
                round.insert((row.newest_write(), id));
            }
        }
        for id in std::mem::take(&mut self.check_parents_of) {
            self.add_dead_parents(&id, &mut round)?;
        }
        while !round.is_empty() {
            let mut next = ResurrectionRound::new();
            for (_, id) in round.into_iter().rev() {
                if self.resurrect(&id)? {
                    self.add_dead_parents(&id, &mut next)?;
                }
            }
            round = next;
        }
        Ok(())
    }

    /// Returns whether a visible row refers to this row.
    fn is_referred_to(&self, id: &RowId) -> Result<bool> {
        let Some(table) = self.table(id.table) else { return Ok(false) };
        let Some(key) = table.key_of(id)? else { return Ok(false) };
        for (child, foreign_key) in references(self.tables, table) {
            let Some(columns) = key_columns(foreign_key, table) else { continue };
            if row_writer::exists(self.db, child, &columns, &key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds every parent of a visible row that is known here, dead, and not visible.
    fn add_dead_parents(&mut self, id: &RowId, round: &mut ResurrectionRound) -> Result<()> {
        let Some(table) = self.table(id.table).filter(|table| !table.foreign_keys.is_empty())
        else {
            return Ok(());
        };
        if !tracked_table::row_exists(self.db, table, id)? {
            return Ok(());
        }
        let row = row_state::load(self.db, id)?.unwrap_or_default();
        let Ok(values) = RowValues::load(&mut self.names, table, id, &row)? else { return Ok(()) };
        for key in &table.foreign_keys {
            round.extend(self.dead_parent(key, &values)?);
        }
        Ok(())
    }

    /// Returns the parent that a row refers to, if it is known here, dead, and not visible.
    fn dead_parent(
        &self,
        key: &ForeignKeySchema,
        values: &RowValues<'_>,
    ) -> Result<Option<(Timestamp, RowId)>> {
        let Some(id) = self.missing_parent(key, values)? else { return Ok(None) };
        let row = row_state::load(self.db, &id)?.filter(|row| !row.is_live());
        Ok(row.map(|row| (row.newest_write(), id)))
    }

    /// Returns the parent that a row refers to, if it is not visible.
    pub(super) fn missing_parent(
        &self,
        key: &ForeignKeySchema,
        values: &RowValues<'_>,
    ) -> Result<Option<RowId>> {
        let Some(parent) = self.table_by_name(&key.parent) else { return Ok(None) };
        let tuple = key_columns(key, parent).and_then(|columns| values.tuple(&columns));
        let Some(tuple) = tuple else { return Ok(None) };
        let id = RowId::new(parent.id, &tuple);
        Ok((!tracked_table::row_exists(self.db, parent, &id)?).then_some(id))
    }

    /// Makes a dead row visible, if it fits. Returns whether it does.
    fn resurrect(&mut self, id: &RowId) -> Result<bool> {
        let Some(table) = self.table(id.table) else { return Ok(false) };
        let row = row_state::load(self.db, id)?.unwrap_or_default();
        let Ok(values) = RowValues::load(&mut self.names, table, id, &row)? else {
            return Ok(false);
        };
        let shown = row_writer::upsert_row(self.db, table, &values)?;
        let visibility_override = match &shown {
            WriteOutcome::Written => VisibilityOverride::new(
                VisibilityOverrideKind::Resurrected,
                "referenced by another row",
            ),
            WriteOutcome::Rejected(reason) => {
                VisibilityOverride::new(VisibilityOverrideKind::DanglingReference, reason.as_str())
            }
        };
        visibility_override::set(self.db, id, &visibility_override)?;
        Ok(matches!(shown, WriteOutcome::Written))
    }
}

/// Returns the columns that refer to the parent's primary key, in its order, or `None` if the
/// foreign key refers to other columns.
fn key_columns(key: &ForeignKeySchema, parent: &TrackedTable) -> Option<Vec<String>> {
    let refers_to = |name: &String| {
        let place = key.parent_columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        place.and_then(|place| key.columns.get(place)).cloned()
    };
    let columns: Option<Vec<_>> = parent.key.iter().map(refers_to).collect();
    columns.filter(|columns| columns.len() == key.columns.len())
}
