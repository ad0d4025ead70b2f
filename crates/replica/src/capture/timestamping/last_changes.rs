//! What of a row's noted changes becomes a message: of each cell the last.

use std::collections::{BTreeSet, HashMap};

use crdt::{CellWrite, Change, Value};

use crate::capture::pending_change::PendingChange;
use crate::capture::triggers::UNSEEN;
use crate::schema::tracked_table::TrackedTable;

/// Which noted change of a row was the last for each of its columns.
#[derive(Default)]
pub(super) struct LastChanges {
    /// The last one that wrote the whole row.
    whole: Option<usize>,
    /// The last one that wrote a column, by position.
    columns: HashMap<usize, usize>,
    /// The positions of columns of which the author had not seen what is known.
    unseen: BTreeSet<usize>,
    /// The last of all.
    any: usize,
    /// Whether that made a new row whose key SQLite chose.
    has_auto_key: bool,
}

impl LastChanges {
    pub(super) fn add(&mut self, index: usize, noted: &PendingChange) {
        self.any = index;
        match noted.changed_columns.as_str() {
            // INSERT OR REPLACE saves a new row as a whole: it stays the one that it was, and what
            // refers to it came later than the first note of it.
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

    /// Whether the message of change number `index` makes a row with an auto key.
    pub(super) fn inserts_auto_key(&self, index: usize) -> bool {
        self.has_auto_key && self.whole == Some(index)
    }

    /// The positions of columns of which the author had not seen what is known.
    pub(super) fn unseen(&self) -> &BTreeSet<usize> {
        &self.unseen
    }

    /// The message of change number `index` to a row that is there.
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

    /// The message of change number `index` to a row that is gone.
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
