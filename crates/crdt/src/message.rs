//! Encodes a message's content: one change of one row, as bytes
//! (`docs/reference/formats/2-message.md`).
//!
//! # Invariants
//! - `decode` accepts exactly what `encode` writes: equal changes have equal bytes.
//! - Decoding allocates no more than the input's own size.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use crate::value::{put_key, put_value};
use crate::{CHUNK_BYTES, TableDeclaration, Timestamp, Value};

/// The unit that devices exchange: a timestamp and opaque bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message's identity, and its place in time.
    pub timestamp: Timestamp,
    /// An encoded [`Change`]; to the server, any bytes.
    pub content: Bytes,
}

/// One cell of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct CellWrite {
    /// The name of the column.
    pub column: String,
    /// The new value of the cell.
    pub value: Value,
    /// The write that was visible in the cell when the author wrote it, if there was one.
    pub replaced: Option<Timestamp>,
}

impl CellWrite {
    /// Creates the write of a cell that showed no earlier write.
    pub fn new(column: &str, value: Value) -> Self {
        Self { column: column.to_owned(), value, replaced: None }
    }
}

/// A decoded change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A write: the row exists, and these cells have these values.
    Write {
        /// The name of the table.
        table: String,
        /// The primary key, in the key's column order.
        key: Vec<Value>,
        /// The cells that were written.
        cells: Vec<CellWrite>,
        /// The row's newest delete, if the author saw the row deleted.
        replaced_tombstone: Option<Timestamp>,
    },
    /// A delete: the row no longer exists.
    Delete {
        /// The name of the table.
        table: String,
        /// The primary key of the row.
        key: Vec<Value>,
        /// The messages that the author saw in the row: that of each cell, and that of the row.
        replaced: BTreeSet<Timestamp>,
    },
    /// The declaration of a table.
    TableDeclaration {
        /// The name of the table.
        table: String,
        /// The table's columns and rules.
        declaration: TableDeclaration,
    },
    /// A chunk of a large value, of at most [`crate::CHUNK_BYTES`].
    Chunk {
        /// The bytes of the chunk.
        bytes: Vec<u8>,
    },
    /// A change whose content was erased permanently ([`Change::common_rest`]).
    Erased,
}

const VERSION: u8 = 1;
const KIND_WRITE: u8 = 1;
const KIND_DELETE: u8 = 2;
const KIND_SCHEMA: u8 = 3;
const KIND_PART: u8 = 4;
const KIND_ERASED: u8 = 5;
impl Change {
    /// Encodes the content of a message.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(96);
        bytes.push(VERSION);
        match self {
            Self::Write { table, key, cells, replaced_tombstone: deleted } => {
                bytes.push(KIND_WRITE);
                put_bytes(&mut bytes, table.as_bytes());
                put_key(&mut bytes, key);
                put_varint(&mut bytes, cells.len() as u64);
                for cell in cells {
                    put_bytes(&mut bytes, cell.column.as_bytes());
                    put_value(&mut bytes, &cell.value);
                }
                put_replaced(&mut bytes, cells, *deleted);
            }
            Self::Delete { table, key, replaced: seen } => {
                bytes.push(KIND_DELETE);
                put_bytes(&mut bytes, table.as_bytes());
                put_key(&mut bytes, key);
                put_varint(&mut bytes, seen.len() as u64);
                for timestamp in seen {
                    bytes.extend(timestamp.to_bytes());
                }
            }
            Self::TableDeclaration { table, declaration } => {
                bytes.push(KIND_SCHEMA);
                put_bytes(&mut bytes, table.as_bytes());
                declaration.put(&mut bytes);
            }
            Self::Chunk { bytes: part } => {
                bytes.push(KIND_PART);
                bytes.extend(part);
            }
            Self::Erased => bytes.push(KIND_ERASED),
        }
        bytes.into()
    }

    /// Decodes a message's content.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader(content);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let kind = reader.byte()?;
        if kind == KIND_PART {
            let is_one = (1..=CHUNK_BYTES).contains(&reader.0.len());
            return is_one
                .then(|| Self::Chunk { bytes: reader.0.to_vec() })
                .ok_or(DecodeError::Malformed);
        }
        if kind == KIND_ERASED {
            return reader.0.is_empty().then_some(Self::Erased).ok_or(DecodeError::Malformed);
        }
        let table = reader.text()?;
        let change = match kind {
            KIND_WRITE => {
                let key = reader.list(ByteReader::value)?;
                let cell = |r: &mut ByteReader<'_>| {
                    Ok(CellWrite { column: r.text()?, value: r.value()?, replaced: None })
                };
                let mut cells = reader.list(cell)?;
                let deleted = reader.replaced(&mut cells)?;
                Self::Write { table, key, cells, replaced_tombstone: deleted }
            }
            KIND_DELETE => Self::Delete {
                table,
                key: reader.list(ByteReader::value)?,
                replaced: reader.replaced_timestamps()?,
            },
            KIND_SCHEMA => {
                Self::TableDeclaration { table, declaration: TableDeclaration::read(&mut reader)? }
            }
            _ => return Err(DecodeError::Malformed),
        };
        if reader.0.is_empty() { Ok(change) } else { Err(DecodeError::Malformed) }
    }
}

impl Change {
    /// Returns the messages that this change replaced and whose effect its author saw.
    pub fn replaced(&self) -> impl Iterator<Item = Timestamp> + use<'_> {
        self.replaced_in(None)
    }

    /// Returns the replaced messages of one column, or of the whole row if `column` is `None`.
    pub(crate) fn replaced_in<'a>(
        &'a self,
        column: Option<&'a str>,
    ) -> impl Iterator<Item = Timestamp> + use<'a> {
        let (cells, deleted, seen) = match self {
            Self::Write { cells, replaced_tombstone: deleted, .. } => (&cells[..], *deleted, None),
            Self::Delete { replaced: seen, .. } => (&[][..], None, Some(seen)),
            Self::TableDeclaration { .. } | Self::Chunk { .. } | Self::Erased => {
                (&[][..], None, None)
            }
        };
        let cells = cells.iter().filter(move |cell| {
            column.is_none_or(|column| cell.column.eq_ignore_ascii_case(column))
        });
        let replaced = cells.filter_map(|cell| cell.replaced);
        replaced.chain(deleted).chain(seen.into_iter().flatten().copied())
    }

    /// Replaces the timestamps of the messages that this change replaced.
    pub fn map_replaced(&mut self, name: impl Fn(Timestamp) -> Timestamp) {
        match self {
            Self::Write { cells, replaced_tombstone: deleted, .. } => {
                let replaced = cells.iter_mut().map(|cell| &mut cell.replaced);
                for timestamp in replaced.chain([deleted]) {
                    *timestamp = timestamp.map(&name);
                }
            }
            Self::Delete { replaced: seen, .. } => *seen = seen.iter().copied().map(name).collect(),
            Self::TableDeclaration { .. } | Self::Chunk { .. } | Self::Erased => {}
        }
    }
}

/// Writes one group for each replaced message, with the places of its cells. The delete comes
/// first, without places.
fn put_replaced(bytes: &mut Vec<u8>, cells: &[CellWrite], deleted: Option<Timestamp>) {
    let mut places_by_replaced: BTreeMap<Timestamp, Vec<u64>> = BTreeMap::new();
    for (place, cell) in (0..).zip(cells) {
        if let Some(replaced) = cell.replaced {
            places_by_replaced.entry(replaced).or_default().push(place);
        }
    }
    let deleted = deleted.map(|deleted| (deleted, Vec::new()));
    let count = places_by_replaced.len() + usize::from(deleted.is_some());
    put_varint(bytes, count as u64);
    for (replaced, places) in deleted.into_iter().chain(places_by_replaced) {
        bytes.extend(replaced.to_bytes());
        put_varint(bytes, places.len() as u64);
        for place in places {
            put_varint(bytes, place);
        }
    }
}

impl ByteReader<'_> {
    /// Reads the output of [`put_replaced`] into the cells. Returns the delete.
    fn replaced(&mut self, cells: &mut [CellWrite]) -> Result<Option<Timestamp>, DecodeError> {
        let groups = self.list(|r| Ok((r.timestamp()?, r.list(Self::varint)?)))?;
        let (mut deleted, mut last) = (None, None);
        for (index, (replaced, places)) in groups.into_iter().enumerate() {
            if places.is_empty() && index == 0 {
                deleted = Some(replaced);
                continue;
            }
            // Groups and places are in order, so that equal changes have equal bytes.
            if last >= Some(replaced) || places.is_empty() || !places.is_sorted_by(|a, b| a < b) {
                return Err(DecodeError::Malformed);
            }
            last = Some(replaced);
            for place in places {
                let place = usize::try_from(place).ok().ok_or(DecodeError::Malformed)?;
                let cell = cells.get_mut(place).ok_or(DecodeError::Malformed)?;
                if cell.replaced.replace(replaced).is_some() {
                    return Err(DecodeError::Malformed);
                }
            }
        }
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests;
