//! Finds lost edits: edits that last-write-wins overwrote although the winner's author had not seen
//! them.
//!
//! Every change names the changes that its author saw in its place (`CellWrite::replaced`, and the
//! messages that a delete saw). All changes that are reached from the winner by following these
//! names were replaced knowingly. Any other end of a chain was lost. The result is a function of
//! the row's messages (`docs/internals/decisions/7-replaced-timestamps.md`), so every device
//! computes it.
//!
//! ```text
//!    1 ── 2 ── 5     5 won; it saw 2, which saw 1
//!     └── 3 ── 4     4 is lost; 3 was replaced by its own author
//! ```
//!
//! # Invariants
//! - The result depends only on the set of changes.
//! - An edit is not lost but restored if a later change on the winner's chain has the same value.
//! - A backfilled row does not count as an edit: it is lost only if its value is nowhere on the
//!   chain.

use std::collections::{BTreeMap, HashSet};

use crate::Value;
use crate::message::{CellWrite, Change};
use crate::{RowState, Timestamp};

/// An edit that is not visible, and that the author of the visible one did not see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostEdit {
    /// The column of the cell, or `None` for the row as a whole, which was lost by a delete or by a
    /// write that names no cell.
    pub column: Option<String>,
    /// The message that was lost.
    pub lost: Timestamp,
    /// The message that won: a write, or a delete of the row.
    pub winner: Timestamp,
}

/// The changes of one row, by timestamp.
pub type RowChanges = BTreeMap<Timestamp, Change>;

/// Returns the lost edits of a row, by column and time. `changes` are all known messages about it.
pub fn lost_edits(changes: &RowChanges) -> Vec<LostEdit> {
    let state = VisibleRow::from_changes(changes);
    let mut lost = Vec::new();
    for (column, newest) in &state.columns {
        let root = if state.row.is_live() { *newest } else { state.row.tombstone() };
        lost.extend(lost_writes(changes, Some(column), root));
    }
    if state.row.is_live() {
        lost.extend(lost_deletes(changes, &state));
    } else {
        lost.extend(lost_writes(changes, None, state.row.tombstone()));
    }
    lost.sort();
    lost
}

/// The visible state of the row.
struct VisibleRow {
    row: RowState,
    /// The newest write of each column, by its name in lower case, since SQLite ignores case.
    columns: BTreeMap<String, Timestamp>,
}

impl VisibleRow {
    fn from_changes(changes: &RowChanges) -> Self {
        let mut state = Self { row: RowState::default(), columns: BTreeMap::new() };
        for (&timestamp, change) in changes {
            match change {
                Change::Write { cells, .. } => {
                    state.row.write(timestamp);
                    let names = cells.iter().map(|cell| cell.column.to_ascii_lowercase());
                    state.columns.extend(names.map(|name| (name, timestamp)));
                }
                Change::Delete { .. } => state.row.delete(timestamp),
                Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => {}
            }
        }
        state
    }
}

/// Returns the writes of a column (`None`: the writes without cells) that end chains which do not
/// lead to `root`.
fn lost_writes(changes: &RowChanges, column: Option<&str>, root: Timestamp) -> Vec<LostEdit> {
    let writes = |change: &Change| match (column, change) {
        // An erased value cannot be restored.
        (Some(column), change) => {
            let value = cell(change, column).map(|cell| cell.value.clone());
            value.filter(|value| *value != Value::Erased)
        }
        (None, Change::Write { cells, .. }) if cells.is_empty() => Some(Value::Null),
        (None, _) => None,
    };
    let chain = causal_history(changes, column, &[root]);
    let replaced = replaced(changes, column);
    let mut lost = Vec::new();
    for (&timestamp, change) in changes {
        let Some(value) = writes(change) else { continue };
        if chain.contains(&timestamp) || replaced.contains(&timestamp) {
            continue;
        }
        let is_there = chain.iter().any(|on_chain| match (changes.get(on_chain), column) {
            // A later write of any cell also states that the row exists.
            (Some(Change::Write { .. }), None) => *on_chain > timestamp,
            (Some(change), Some(_)) => {
                (*on_chain > timestamp || timestamp.is_backfill())
                    && writes(change).as_ref() == Some(&value)
            }
            _ => false,
        });
        if !is_there {
            let name = column.and_then(|column| cell(change, column));
            let column = name.map(|cell| cell.column.clone());
            lost.push(LostEdit { column, lost: timestamp, winner: root });
        }
    }
    lost
}

/// Returns the deletes that the authors of the visible writes did not see.
fn lost_deletes(changes: &RowChanges, state: &VisibleRow) -> Vec<LostEdit> {
    let winner = state.row.newest_write();
    let roots: Vec<_> = state.columns.values().copied().chain([winner]).collect();
    let chain = causal_history(changes, None, &roots);
    let replaced = replaced(changes, None);
    // A delete that saw nothing lost nothing: its author had created the row just before.
    let is_delete = |timestamp: &Timestamp| {
        let change = changes.get(timestamp);
        matches!(change, Some(Change::Delete { replaced: seen, .. }) if !seen.is_empty())
    };
    let newest_seen = chain.iter().copied().filter(is_delete).max();
    let deletes = changes.keys().copied().filter(is_delete);
    deletes
        .filter(|timestamp| !chain.contains(timestamp) && !replaced.contains(timestamp))
        .filter(|timestamp| newest_seen.is_none_or(|seen| seen < *timestamp))
        .map(|lost| LostEdit { column: None, lost, winner })
        .collect()
}

/// Returns `roots` and everything that their authors saw in this column (`None`: in the row).
fn causal_history(
    changes: &RowChanges,
    column: Option<&str>,
    roots: &[Timestamp],
) -> HashSet<Timestamp> {
    let mut found: HashSet<_> = roots.iter().copied().collect();
    let mut to_do = roots.to_vec();
    while let Some(timestamp) = to_do.pop() {
        let Some(change) = changes.get(&timestamp) else { continue };
        to_do.extend(change.replaced_in(column).filter(|timestamp| found.insert(*timestamp)));
    }
    found
}

/// Returns everything that was replaced knowingly.
fn replaced(changes: &RowChanges, column: Option<&str>) -> HashSet<Timestamp> {
    changes.values().flat_map(|change| change.replaced_in(column)).collect()
}

fn cell<'a>(change: &'a Change, column: &str) -> Option<&'a CellWrite> {
    let Change::Write { cells, .. } = change else { return None };
    cells.iter().find(|cell| cell.column.eq_ignore_ascii_case(column))
}

#[cfg(test)]
mod tests;
