//! The merge: takes messages that the server sent into the rows' state.
//!
//! Only state changes here; every touched row is noted as unsettled, and the tables follow later
//! (`settle`). So a merge cannot fail for what a table looks like, and knows nothing of
//! constraints.

use crdt::{Change, ColumnId, Row, Timestamp};
use rusqlite::Connection;

use crate::error::Result;
use crate::meta;
use crate::report::Refused;
use crate::state::{self, Names, RowId};
use crate::{declaration, form, log, parts};

/// Merges everything in the log that the state does not have yet; returns what cannot be.
pub(crate) fn merge(db: &Connection, mut progress: impl FnMut(u64)) -> Result<Refused> {
    let mut names = Names::new(db)?;
    let mut refused = Refused::default();
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
    Ok(refused)
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
