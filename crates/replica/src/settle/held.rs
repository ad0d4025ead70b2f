//! Which live rows are visible, where not all can be.
//!
//! Rows are taken in the order of their newest writes, the newest first. A row is visible if the
//! table takes it by itself (CHECK, NOT NULL, types) and if no row that is visible already has a
//! value that only one of them may have (UNIQUE, in any form that SQLite has: also partial, of
//! expressions, or a primary key that does not tell 'a' from 'A').
//!
//! That is a function of the rows: whether one is visible depends only on those with newer writes.
//! So one pass from the newest to the oldest decides all of them, and a decision is never looked at
//! again. Rows that are visible and that nothing newer displaces need not be looked at: those that
//! are not visible are, and what they displace, which is older.

use std::collections::BinaryHeap;

use crdt::{Row, Timestamp};

use super::{EqualRows, Settler};
use crate::counted;
use crate::error::{Error, Result};
use crate::exception::{self, Exception, Kind};
use crate::show::{self, Placed, Values};
use crate::state::{self, RowId};
use crate::table::Table;

/// Newest writes are the greatest; equal ones, which no honest devices make, go by name.
type Rank = (Timestamp, RowId);

/// What is to become of a row that is not visible.
enum Decision {
    /// Visible, in the place of these.
    Visible {
        displaced: Vec<Rank>,
    },
    Held(Exception),
}

impl Settler<'_> {
    /// Decides on every row that is live and not visible.
    pub(super) fn settle_held(&mut self) -> Result<()> {
        let mut waiting = BinaryHeap::new();
        for (id, kind) in exception::all(self.db)? {
            if kind.is_held() {
                let row = state::load(self.db, &id)?.unwrap_or_default();
                waiting.push((row.written(), id));
            }
        }
        while let Some((written, id)) = waiting.pop() {
            let Some(table) = self.table(id.table) else { continue };
            let row = state::load(self.db, &id)?.unwrap_or_default();
            if !row.is_live() {
                exception::clear(self.db, &id)?;
                continue;
            }
            match self.decide(table, &(written, id.clone()), &row)? {
                Decision::Visible { displaced } => {
                    exception::clear(self.db, &id)?;
                    self.look_again.push_back(id);
                    for (_, displaced) in &displaced {
                        let reason = newer(table);
                        let exception = Exception::new(Kind::Displaced, reason);
                        exception::set(self.db, displaced, &exception)?;
                    }
                    waiting.extend(displaced);
                }
                Decision::Held(exception) => exception::set(self.db, &id, &exception)?,
            }
        }
        Ok(())
    }

    fn decide(&mut self, table: &Table, rank: &Rank, row: &Row) -> Result<Decision> {
        let values = match Values::load(&mut self.names, table, &rank.1, row)? {
            Ok(values) => values,
            Err(unfit) => return Ok(Decision::Held(unfit)),
        };
        self.db.execute_batch("SAVEPOINT warren_held")?;
        let decision = self.try_to_show(table, rank, &values)?;
        if let Decision::Held(_) = decision {
            self.db.execute_batch("ROLLBACK TO warren_held")?;
        }
        self.db.execute_batch("RELEASE warren_held")?;
        Ok(decision)
    }

    /// Shows the row, and takes out whatever is in its way and older.
    fn try_to_show(&mut self, table: &Table, rank: &Rank, values: &Values<'_>) -> Result<Decision> {
        let mut displaced = Vec::new();
        loop {
            let rival = match show::place(self.db, table, values)? {
                Placed::Yes => return Ok(Decision::Visible { displaced }),
                Placed::Refused(why) => {
                    return Ok(Decision::Held(Exception::new(Kind::Constraint, why)));
                }
                Placed::Beside(rival) => rival,
            };
            self.note_equal(table, &rank.1, &rival)?;
            let state = state::load(self.db, &rival)?.filter(Row::is_live);
            match state.map(|row| (row.written(), rival)) {
                Some(older) if older < *rank => {
                    show::hide(self.db, table, &older.1)?;
                    displaced.push(older);
                }
                // A newer row; or one that nobody has noted, which would be lost.
                _ => return Ok(Decision::Held(Exception::new(Kind::Displaced, newer(table)))),
            }
        }
    }

    fn note_equal(&mut self, table: &Table, one: &RowId, two: &RowId) -> Result<()> {
        if !table.counts {
            return Ok(());
        }
        let is_new = |id| Ok::<_, Error>(counted::find(self.db, id)?.is_some());
        let (own, other) = match (is_new(one)?, is_new(two)?) {
            (true, false) => (one.clone(), two.clone()),
            (false, true) => (two.clone(), one.clone()),
            _ => return Ok(()),
        };
        let was_deleted = |id| {
            let row = state::load(self.db, id)?;
            Ok::<_, Error>(row.is_none_or(|row| row.deleted() != Timestamp::ZERO))
        };
        let is_any_deleted = was_deleted(&own)? || was_deleted(&other)?;
        if !is_any_deleted && state::are_equal(self.db, &own, &other)? {
            self.equal.push(EqualRows { own, other });
        }
        Ok(())
    }
}

fn newer(table: &Table) -> String {
    format!("a row with a newer write has the same value in {}", table.name)
}
