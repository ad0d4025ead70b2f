//! The merge: takes messages that the server sent into the rows' state.
//!
//! Only state changes here; every touched row is noted as unsettled, and the tables follow later
//! (`settle`). So a merge cannot fail for what a table looks like, and knows nothing of
//! constraints.

use std::collections::HashSet;

use crdt::{Change, ColumnId, Row, Timestamp};
use rusqlite::Connection;

use crate::error::Result;
use crate::meta;
use crate::report::Refused;
use crate::state::{self, Names, RowId};
use crate::{declaration, form, log, parts};

/// What a merge found.
#[derive(Default)]
pub(crate) struct Merged {
    pub(crate) refused: Refused,
    /// Rows in which an edit met another that its author may not have seen.
    pub(crate) contested: HashSet<RowId>,
}

/// Merges everything in the log that the state does not have yet.
pub(crate) fn merge(db: &Connection, mut progress: impl FnMut(u64)) -> Result<Merged> {
    let mut names = Names::new(db)?;
    let Merged { mut refused, mut contested } = Merged::default();
    // What is stamped from here on sorts after everything that was merged.
    let mut clock = meta::clock(db)?;
    let mut count = 0;
    loop {
        let messages = log::unmerged_page(db)?;
        let Some(last) = messages.last() else { break };
        for message in &messages {
            let timestamp = message.timestamp;
            match names.log.decode(message) {
                Ok(change) => {
                    if let Some(row) = contests(&mut names, timestamp, &change)? {
                        contested.insert(row);
                    }
                    merge_one(&mut names, timestamp, &change)?;
                    clock.receive(timestamp);
                }
                Err(refusal) => {
                    log::refuse(db, timestamp)?;
                    refused.add(timestamp, refusal);
                }
            }
        }
        log::mark_merged(db, last.timestamp)?;
        count += messages.len() as u64;
        progress(count);
    }
    if count > refused.count() {
        form::prove(db)?;
    }
    meta::set_clock(db, &clock)?;
    Ok(Merged { refused, contested })
}

/// The row of a change, if something stands there that the change's author did not name. What was
/// there before tracking began is no edit.
fn contests(names: &mut Names<'_>, timestamp: Timestamp, change: &Change) -> Result<Option<RowId>> {
    let (Change::Write { table, key, .. } | Change::Delete { table, key, .. }) = change else {
        return Ok(None);
    };
    let id = RowId::new(names.table(table)?, key);
    let Some(row) = state::load(names.db, &id)?.filter(|_| !timestamp.is_baseline()) else {
        return Ok(None);
    };
    let is_edit = |there: &Timestamp| *there != Timestamp::ZERO && !there.is_baseline();
    let is_contested = match change {
        Change::Write { cells, deleted, .. } => {
            let mut is_contested = !row.is_live() && *deleted != Some(row.deleted());
            for cell in cells {
                let there = row.cell(names.column(table, &cell.column)?).filter(is_edit);
                is_contested |= there.is_some() && there != cell.replaced;
            }
            is_contested
        }
        Change::Delete { seen, .. } => {
            let all = row.cells().iter().map(|cell| cell.1).chain([row.written()]);
            all.filter(is_edit).any(|there| !seen.contains(&there))
        }
        Change::Schema { .. } | Change::Part { .. } => false,
    };
    Ok(is_contested.then_some(id))
}

/// Takes one change into the state of its row.
pub(crate) fn merge_one(
    names: &mut Names<'_>,
    timestamp: Timestamp,
    change: &Change,
) -> Result<()> {
    match change {
        Change::Write { table, key, cells, .. } => {
            let id = RowId::new(names.table(table)?, key);
            let mut columns = Vec::with_capacity(cells.len());
            for cell in cells {
                columns.push(names.column(table, &cell.column)?);
            }
            update(names.db, &id, |row| write(row, &columns, timestamp))
        }
        Change::Delete { table, key, .. } => {
            let id = RowId::new(names.table(table)?, key);
            update(names.db, &id, |row| row.delete(timestamp))
        }
        Change::Schema { table, declaration } => {
            declaration::note(names, table, timestamp, declaration)
        }
        Change::Part { bytes } => parts::note(names.db, &crdt::part_digest(bytes), timestamp),
    }
}

fn write(row: &mut Row, columns: &[ColumnId], timestamp: Timestamp) {
    row.write(timestamp);
    for &column in columns {
        row.write_cell(column, timestamp);
    }
}

fn update(db: &Connection, id: &RowId, change: impl FnOnce(&mut Row)) -> Result<()> {
    let before = state::load(db, id)?;
    let mut row = before.clone().unwrap_or_default();
    change(&mut row);
    if before.as_ref() != Some(&row) {
        state::save(db, id, &row)?;
        state::unsettle(db, id, true)?;
    }
    Ok(())
}
