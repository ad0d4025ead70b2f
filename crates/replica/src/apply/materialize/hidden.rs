//! Decides which live rows are visible, if not all of them can be.
//!
//! Rows are taken in the order of their newest writes, the newest first. A row is visible if the
//! table itself accepts it (CHECK, NOT NULL, types) and if no row that is already visible has the
//! same unique value (UNIQUE, in any form that SQLite has: also partial, of expressions, or a
//! primary key that does not distinguish 'a' from 'A').
//!
//! This is a function of the rows: whether one is visible depends only on those with newer writes.
//! So one pass from the newest to the oldest decides all of them, and no decision is revised.
//! Visible rows that nothing newer displaces need no decision. Only rows that are not visible do,
//! and the older rows that they displace.

use std::collections::BinaryHeap;

use crdt::{RowState, Timestamp};

use super::{EqualRows, Materializer};
use crate::apply::row_state;
use crate::apply::row_writer::{self, InsertOutcome, RowValues};
use crate::apply::visibility_override::{self, VisibilityOverride, VisibilityOverrideKind};
use crate::capture::provisional_keys;
use crate::error::{Error, Result};
use crate::row_id::RowId;
use crate::schema::tracked_table::TrackedTable;

/// The rank of a row: the newest write is the greatest. Equal writes, which correct devices never
/// create, are ordered by row id.
type WriteRank = (Timestamp, RowId);

/// The decision about a row that is not visible.
enum VisibilityDecision {
    /// The row becomes visible and displaces these rows.
    Visible {
        displaced: Vec<WriteRank>,
    },
    Hidden(VisibilityOverride),
}

impl Materializer<'_> {
    /// Decides every row that is live and not visible.
    pub(super) fn decide_hidden_rows(&mut self) -> Result<()> {
        let mut waiting = BinaryHeap::new();
        for (id, kind) in visibility_override::all(self.db)? {
            if kind.hides_live_row() {
                let row = row_state::load(self.db, &id)?.unwrap_or_default();
                waiting.push((row.newest_write(), id));
            }
        }
        while let Some((written, id)) = waiting.pop() {
            let Some(table) = self.table(id.table) else { continue };
            let row = row_state::load(self.db, &id)?.unwrap_or_default();
            if !row.is_live() {
                visibility_override::clear(self.db, &id)?;
                continue;
            }
            match self.decide(table, &(written, id.clone()), &row)? {
                VisibilityDecision::Visible { displaced } => {
                    visibility_override::clear(self.db, &id)?;
                    self.check_parents_of.push_back(id);
                    for (_, displaced) in &displaced {
                        let reason = displaced_reason(table);
                        let visibility_override =
                            VisibilityOverride::new(VisibilityOverrideKind::Displaced, reason);
                        visibility_override::set(self.db, displaced, &visibility_override)?;
                    }
                    waiting.extend(displaced);
                }
                VisibilityDecision::Hidden(visibility_override) => {
                    visibility_override::set(self.db, &id, &visibility_override)?;
                }
            }
        }
        Ok(())
    }

    fn decide(
        &mut self,
        table: &TrackedTable,
        rank: &WriteRank,
        row: &RowState,
    ) -> Result<VisibilityDecision> {
        let values = match RowValues::load(&mut self.names, table, &rank.1, row)? {
            Ok(values) => values,
            Err(unfit) => return Ok(VisibilityDecision::Hidden(unfit)),
        };
        self.db.execute_batch("SAVEPOINT warren_held")?;
        let decision = self.try_insert(table, rank, &values)?;
        if let VisibilityDecision::Hidden(_) = decision {
            self.db.execute_batch("ROLLBACK TO warren_held")?;
        }
        self.db.execute_batch("RELEASE warren_held")?;
        Ok(decision)
    }

    /// Inserts the row, and removes older rows that conflict with it.
    fn try_insert(
        &mut self,
        table: &TrackedTable,
        rank: &WriteRank,
        values: &RowValues<'_>,
    ) -> Result<VisibilityDecision> {
        let mut displaced = Vec::new();
        loop {
            let rival = match row_writer::insert_row(self.db, table, values)? {
                InsertOutcome::Inserted => return Ok(VisibilityDecision::Visible { displaced }),
                InsertOutcome::Rejected(reason) => {
                    return Ok(VisibilityDecision::Hidden(VisibilityOverride::new(
                        VisibilityOverrideKind::Constraint,
                        reason,
                    )));
                }
                InsertOutcome::ConflictsWith(rival) => rival,
            };
            self.note_equal(table, &rank.1, &rival)?;
            let state = row_state::load(self.db, &rival)?.filter(RowState::is_live);
            match state.map(|row| (row.newest_write(), rival)) {
                Some(older) if older < *rank => {
                    row_writer::delete_row(self.db, table, &older.1)?;
                    displaced.push(older);
                }
                // The other row is newer, or not recorded in any message and would be lost.
                _ => {
                    return Ok(VisibilityDecision::Hidden(VisibilityOverride::new(
                        VisibilityOverrideKind::Displaced,
                        displaced_reason(table),
                    )));
                }
            }
        }
    }

    fn note_equal(&mut self, table: &TrackedTable, one: &RowId, two: &RowId) -> Result<()> {
        if !table.has_auto_key {
            return Ok(());
        }
        let is_new = |id| Ok::<_, Error>(provisional_keys::find(self.db, id)?.is_some());
        let (own, other) = match (is_new(one)?, is_new(two)?) {
            (true, false) => (one.clone(), two.clone()),
            (false, true) => (two.clone(), one.clone()),
            _ => return Ok(()),
        };
        let was_deleted = |id| {
            let row = row_state::load(self.db, id)?;
            Ok::<_, Error>(row.is_none_or(|row| row.tombstone() != Timestamp::ZERO))
        };
        let is_any_deleted = was_deleted(&own)? || was_deleted(&other)?;
        if !is_any_deleted && row_state::are_equal(self.db, &own, &other)? {
            self.equal.push(EqualRows { own, other });
        }
        Ok(())
    }
}

fn displaced_reason(table: &TrackedTable) -> String {
    format!("a newer row has the same unique value in {}", table.name)
}
