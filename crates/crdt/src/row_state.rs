//! Merges changes into one row's replicated state: a last-write-wins register per cell, and a
//! tombstone.
//!
//! A row keeps, for each column, the timestamp of the newest write, the newest write of all, and
//! the newest delete. Values are not here: a cell's value is found in the messages by its
//! timestamp. Maxima commute, associate and are idempotent, so replicas that have seen the same
//! messages hold the same state, whatever the order, duplication or delay.
//!
//! ```text
//! encoded = written(16) deleted(16) { column<<1|same  [timestamp(16) unless same] }
//! ```
//! `same` means that the row's newest write wrote the cell, as for all cells after an INSERT.

use crate::Timestamp;
use crate::codec::{ByteReader, DecodeError, put_varint};

/// The number of a column. The component that stores the state assigns it, and knows the names.
pub type ColumnId = u32;

/// The last-write-wins state of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    newest_write: Timestamp,
    tombstone: Timestamp,
    cells: Vec<(ColumnId, Timestamp)>,
}

impl Default for RowState {
    fn default() -> Self {
        Self { newest_write: Timestamp::ZERO, tombstone: Timestamp::ZERO, cells: Vec::new() }
    }
}

impl RowState {
    /// Merges a write of `column`. Returns true if it is newer than the known one.
    pub fn write_cell(&mut self, column: ColumnId, timestamp: Timestamp) -> bool {
        self.write(timestamp);
        match self.cells.binary_search_by_key(&column, |cell| cell.0) {
            Ok(found) => {
                let newer = timestamp > self.cells[found].1;
                self.cells[found].1 = self.cells[found].1.max(timestamp);
                newer
            }
            Err(place) => {
                self.cells.insert(place, (column, timestamp));
                true
            }
        }
    }

    /// Merges a write that names no cell: the row exists.
    pub fn write(&mut self, timestamp: Timestamp) {
        self.newest_write = self.newest_write.max(timestamp);
    }

    /// Merges a delete.
    pub fn delete(&mut self, timestamp: Timestamp) {
        self.tombstone = self.tombstone.max(timestamp);
    }

    /// Returns whether the newest write is newer than the newest delete.
    pub fn is_live(&self) -> bool {
        self.newest_write > self.tombstone
    }

    /// Returns the newest write, or [`Timestamp::ZERO`] if only deletes are known.
    pub fn newest_write(&self) -> Timestamp {
        self.newest_write
    }

    /// Returns the newest delete, or [`Timestamp::ZERO`].
    pub fn tombstone(&self) -> Timestamp {
        self.tombstone
    }

    /// Returns each known cell with its newest write, by column.
    pub fn cells(&self) -> &[(ColumnId, Timestamp)] {
        &self.cells
    }

    /// Returns the newest write of a cell, if one is known.
    pub fn cell(&self, column: ColumnId) -> Option<Timestamp> {
        let found = self.cells.binary_search_by_key(&column, |cell| cell.0);
        found.ok().map(|place| self.cells[place].1)
    }

    /// Replaces one timestamp by another everywhere, so that a message with a new timestamp keeps
    /// its effect.
    pub fn replace_timestamp(&mut self, old: Timestamp, new: Timestamp) {
        let swap = |t: &mut Timestamp| {
            if *t == old {
                *t = new;
            }
        };
        swap(&mut self.newest_write);
        swap(&mut self.tombstone);
        self.cells.iter_mut().for_each(|cell| swap(&mut cell.1));
    }

    /// Encodes the state for storage.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.cells.len() * 2);
        bytes.extend(self.newest_write.to_bytes());
        bytes.extend(self.tombstone.to_bytes());
        for &(column, timestamp) in &self.cells {
            let same = timestamp == self.newest_write;
            put_varint(&mut bytes, u64::from(column) << 1 | u64::from(same));
            if !same {
                bytes.extend(timestamp.to_bytes());
            }
        }
        bytes
    }

    /// Decodes a stored state.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader(bytes);
        let newest_write = reader.timestamp()?;
        let deleted = reader.timestamp()?;
        let mut cells = Vec::new();
        while !reader.0.is_empty() {
            let tag = reader.varint()?;
            let column = ColumnId::try_from(tag >> 1).ok().ok_or(DecodeError::Malformed)?;
            let timestamp = if tag & 1 == 1 { newest_write } else { reader.timestamp()? };
            cells.push((column, timestamp));
        }
        Ok(Self { newest_write, tombstone: deleted, cells })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NodeId;

    #[derive(Clone, Debug)]
    enum RowEdit {
        Write(Vec<ColumnId>, Timestamp),
        Delete(Timestamp),
    }

    fn any_step() -> impl Strategy<Value = RowEdit> {
        let timestamp = (1u64..20, 0u16..3, 0u64..3).prop_map(|(millis, counter, node)| {
            Timestamp::new(millis, counter, NodeId(node)).unwrap()
        });
        let columns = prop::collection::vec(0u32..5, 0..5);
        prop_oneof![
            (columns, timestamp.clone()).prop_map(|(c, t)| RowEdit::Write(c, t)),
            timestamp.prop_map(RowEdit::Delete),
        ]
    }

    fn merge<'a>(steps: impl IntoIterator<Item = &'a RowEdit>) -> RowState {
        let mut row = RowState::default();
        for step in steps {
            match step {
                RowEdit::Write(columns, t) => {
                    row.write(*t);
                    for column in columns {
                        row.write_cell(*column, *t);
                    }
                }
                RowEdit::Delete(t) => row.delete(*t),
            }
        }
        row
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::new(millis, 0, NodeId(1)).unwrap()
    }

    proptest! {
        #[test]
        fn any_order_and_duplication_gives_the_same_row(
            steps in prop::collection::vec(any_step(), 0..30),
            order in any::<u64>(),
        ) {
            let row = merge(&steps);
            let mut shuffled: Vec<_> = steps.iter().chain(&steps).enumerate().collect();
            shuffled.sort_by_key(|(i, _)| (*i as u64 + 1).wrapping_mul(order | 1).rotate_left(17));
            prop_assert_eq!(&merge(shuffled.into_iter().map(|(_, s)| s)), &row);
            prop_assert_eq!(RowState::decode(&row.encode()).unwrap(), row);
        }

        #[test]
        fn decoding_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(row) = RowState::decode(&bytes) {
                prop_assert!(row.cells().len() <= bytes.len());
            }
        }
    }

    #[test]
    fn the_newest_write_of_each_cell_wins() {
        let mut row = RowState::default();
        assert!(row.write_cell(1, at(5)));
        assert!(!row.write_cell(1, at(4)));
        assert!(!row.write_cell(1, at(5)));
        assert!(row.write_cell(2, at(3)));
        assert_eq!(row.cells(), [(1, at(5)), (2, at(3))]);
        assert_eq!(row.newest_write(), at(5));
    }

    #[test]
    fn a_delete_hides_the_row_until_a_later_write() {
        let mut row = merge(&[RowEdit::Write(vec![1], at(5)), RowEdit::Delete(at(6))]);
        assert!(!row.is_live());
        row.write_cell(2, at(4));
        assert!(!row.is_live(), "an older write does not revive");
        row.write_cell(2, at(7));
        assert!(row.is_live());
        assert_eq!(row.cells(), [(1, at(5)), (2, at(7))], "older cells come back with the row");
    }

    #[test]
    fn a_renamed_message_keeps_its_effect() {
        let mut row = merge(&[RowEdit::Write(vec![1, 2], at(5)), RowEdit::Write(vec![2], at(6))]);
        row.replace_timestamp(at(5), at(5).with_node_id(NodeId(9)));
        assert_eq!(row.cells(), [(1, at(5).with_node_id(NodeId(9))), (2, at(6))]);
    }
}
