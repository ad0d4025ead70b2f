//! Selects which pending changes of a row become messages: the last one of each cell.

use std::collections::{BTreeSet, HashMap};

use crdt::{CellWrite, Change, Value};

use crate::capture::pending_change::PendingChange;
use crate::capture::triggers::UNSEEN;
use crate::schema::tracked_table::TrackedTable;

/// The last pending change of each column of a row.
#[derive(Default)]
pub(super) struct LastChanges {
    /// The last change that wrote the whole row.
    whole: Option<usize>,
    /// The last change that wrote a column, by position.
    columns: HashMap<usize, usize>,
    /// The positions of columns whose known value the author had not seen.
    unseen: BTreeSet<usize>,
    /// The last change of the row.
    any: usize,
    /// Whether the last whole write inserted a row whose key SQLite chose.
    has_auto_key: bool,
}

impl LastChanges {
    pub(super) fn add(&mut self, index: usize, noted: &PendingChange) {
        self.any = index;
        match noted.changed_columns.as_str() {
            // INSERT OR REPLACE saves a new row as a whole: it remains the same row, and references
            // to it came after its first pending change.
            "*" if self.has_auto_key => {}
            "*" => {
                self.whole = Some(index);
                self.has_auto_key = noted.has_auto_key();
                self.columns.clear();
                self.unseen.clear();
            }
            "-" => self.has_auto_key = false,
            "?" => {}
            mask => {
                for (position, bit) in mask.bytes().enumerate().filter(|(_, bit)| *bit != b'0') {
                    self.columns.insert(position, index);
                    if bit == UNSEEN {
                        self.unseen.insert(position);
                    }
                }
            }
        }
    }

    /// Returns whether the message of change number `index` inserts a row with an auto key.
    pub(super) fn inserts_auto_key(&self, index: usize) -> bool {
        self.has_auto_key && self.whole == Some(index)
    }

    /// Returns the positions of columns whose known value the author had not seen.
    pub(super) fn unseen(&self) -> &BTreeSet<usize> {
        &self.unseen
    }

    /// Returns the write of change number `index` to an existing row, if it is the last of a cell.
    pub(super) fn write(
        &self,
        index: usize,
        table: &TrackedTable,
        key: &[Value],
        values: Vec<Value>,
    ) -> Option<Change> {
        let whole = self.whole == Some(index);
        let is_last = |position: usize| match self.columns.get(&position) {
            Some(last) => *last == index,
            None => whole,
        };
        let cells: Vec<_> = table
            .columns
            .iter()
            .zip(values)
            .enumerate()
            .filter(|(position, _)| is_last(*position))
            .map(|(_, (column, value))| CellWrite::new(&column.name, value))
            .collect();
        let (table, key) = (table.name.clone(), key.to_vec());
        (whole || !cells.is_empty()).then_some(Change::Write {
            table,
            key,
            cells,
            replaced_tombstone: None,
        })
    }

    /// Returns the delete of change number `index`, if it is the last change of the row.
    pub(super) fn delete(
        &self,
        index: usize,
        table: &TrackedTable,
        key: &[Value],
    ) -> Option<Change> {
        let (table, key) = (table.name.clone(), key.to_vec());
        let seen = BTreeSet::new();
        (self.any == index).then_some(Change::Delete { table, key, replaced: seen })
    }
}
