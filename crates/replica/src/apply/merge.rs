//! Merges received messages into the row states.
//!
//! Only row states change here. Every touched row is marked as dirty, and the tables follow later
//! (`materialize`). So a merge cannot fail because of a table's schema, and needs no knowledge of
//! constraints.

use std::collections::{BTreeSet, HashSet};

use crdt::{Change, ColumnId, RowState, Timestamp};
use rusqlite::Connection;

use super::row_state::{self, NameResolver};
use super::unseen;
use crate::error::Result;
use crate::log::message_log::MessageLog;
use crate::log::rejected::RejectedMessages;
use crate::log::{message_log, value_chunks};
use crate::meta;
use crate::row_id::RowId;
use crate::schema::declaration;
use crate::sync::account_encryption;

/// The result of a merge.
#[derive(Default)]
pub(crate) struct MergeOutcome {
    pub(crate) rejected: RejectedMessages,
    /// Rows in which an edit met another one that its author may not have seen.
    pub(crate) contested: HashSet<RowId>,
}

/// Merges everything in the log that the row states do not include yet.
pub(crate) fn merge(db: &Connection, mut progress: impl FnMut(u64)) -> Result<MergeOutcome> {
    let mut names = NameResolver::new(db)?;
    let MergeOutcome { mut rejected, mut contested } = MergeOutcome::default();
    // Later timestamps sort after everything that was merged.
    let mut clock = meta::clock(db)?;
    let mut count = 0;
    loop {
        let messages = message_log::unmerged_page(db)?;
        let Some(last) = messages.last() else { break };
        for message in &messages {
            let timestamp = message.timestamp;
            match names.log.decode(message) {
                Ok(change) => {
                    contested.extend(merge_change(&mut names, timestamp, &change)?);
                    clock.observe(timestamp);
                }
                Err(refusal) => {
                    message_log::mark_rejected(db, timestamp)?;
                    rejected.add(timestamp, refusal);
                }
            }
        }
        message_log::mark_merged(db, last.timestamp)?;
        count += messages.len() as u64;
        progress(count);
    }
    if count > rejected.count() {
        account_encryption::mark_phrase_verified(db)?;
    }
    meta::set_clock(db, &clock)?;
    Ok(MergeOutcome { rejected, contested })
}

/// Merges one change into the state of its row. Returns the row if its state has an edit that the
/// change's author did not name as seen.
pub(crate) fn merge_change(
    names: &mut NameResolver<'_>,
    timestamp: Timestamp,
    change: &Change,
) -> Result<Option<RowId>> {
    match change {
        Change::Write { table, key, cells, replaced_tombstone: deleted } => {
            let id = RowId::new(names.table(table)?, key);
            let mut columns = Vec::with_capacity(cells.len());
            for cell in cells {
                columns.push((names.column(table, &cell.column)?, cell.replaced));
            }
            let before = update(names.db, &id, |row| {
                row.write(timestamp);
                for &(column, _) in &columns {
                    row.write_cell(column, timestamp);
                }
            })?;
            let Some(row) = before.filter(|_| !timestamp.is_backfill()) else { return Ok(None) };
            let unseen = unseen_writes(&row, &columns);
            record_own_unseen(names.db, &id, timestamp, &unseen)?;
            let is_delete_unseen = !row.is_live() && *deleted != Some(row.tombstone());
            Ok((is_delete_unseen || !unseen.is_empty()).then_some(id))
        }
        Change::Delete { table, key, replaced: seen } => {
            let id = RowId::new(names.table(table)?, key);
            let before = update(names.db, &id, |row| row.delete(timestamp))?;
            let is_contested = before.is_some_and(|row| {
                let all = row.cells().iter().map(|cell| cell.1).chain([row.newest_write()]);
                all.into_iter().any(|there| is_edit(there) && !seen.contains(&there))
            });
            Ok(is_contested.then_some(id))
        }
        Change::TableDeclaration { table, declaration } => {
            declaration::record_declaration(names, table, timestamp, declaration)?;
            Ok(None)
        }
        Change::Chunk { bytes } => {
            value_chunks::record_chunk(names.db, &crdt::chunk_digest(bytes), timestamp)?;
            Ok(None)
        }
        Change::Erased => Ok(None),
    }
}

/// Returns the edits in a row's cells that the author of a write to them did not name as seen.
pub(crate) fn unseen_writes(
    row: &RowState,
    cells: &[(ColumnId, Option<Timestamp>)],
) -> Vec<Timestamp> {
    let unseen = |&(column, replaced): &(ColumnId, Option<Timestamp>)| {
        row.cell(column).filter(|there| is_edit(*there) && Some(*there) != replaced)
    };
    cells.iter().filter_map(unseen).collect()
}

/// Records a row if the author of a write had not seen an edit of the same device.
pub(crate) fn record_own_unseen(
    db: &Connection,
    id: &RowId,
    timestamp: Timestamp,
    unseen: &[Timestamp],
) -> Result<()> {
    let is_own = unseen.iter().any(|there| there.node_id() == timestamp.node_id());
    if is_own { unseen::record_unseen(db, id) } else { Ok(()) }
}

/// Returns the row of a change, if it changes one.
pub(crate) fn row_of(names: &mut NameResolver<'_>, change: &Change) -> Result<Option<RowId>> {
    match change {
        Change::Write { table, key, .. } | Change::Delete { table, key, .. } => {
            Ok(Some(RowId::new(names.table(table)?, key)))
        }
        Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => Ok(None),
    }
}

/// Rebuilds the states of rows from the log.
pub(crate) fn rebuild(names: &mut NameResolver<'_>, rows: &BTreeSet<RowId>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    for row in rows {
        row_state::remove(names.db, row)?;
        row_state::mark_dirty(names.db, row, true)?;
    }
    let log = MessageLog::open(names.db)?;
    log.for_each_change(|timestamp, change| match row_of(names, &change)? {
        Some(row) if rows.contains(&row) => merge_change(names, timestamp, &change).map(drop),
        _ => Ok(()),
    })
}

/// Returns whether a timestamp belongs to an edit. Backfilled rows, which existed before tracking
/// began, are not edits.
fn is_edit(timestamp: Timestamp) -> bool {
    timestamp != Timestamp::ZERO && !timestamp.is_backfill()
}

/// Changes a row's state. Returns the previous state, if the row was known.
fn update(
    db: &Connection,
    id: &RowId,
    change: impl FnOnce(&mut RowState),
) -> Result<Option<RowState>> {
    let before = row_state::load(db, id)?;
    let mut row = before.clone().unwrap_or_default();
    change(&mut row);
    if before.as_ref() != Some(&row) {
        row_state::save(db, id, &row)?;
        row_state::mark_dirty(db, id, true)?;
    }
    Ok(before)
}
