//! The message and its content: one change of one row, as bytes
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

/// What devices exchange: an identity and opaque bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its identity, and its place in time.
    pub timestamp: Timestamp,
    /// An encoded [`Change`]; to the server, any bytes.
    pub content: Bytes,
}

/// One cell of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct CellWrite {
    /// Column name.
    pub column: String,
    /// What it is from here on.
    pub value: Value,
    /// The write that was shown in the cell when the author wrote it, if any was.
    pub replaced: Option<Timestamp>,
}

impl CellWrite {
    /// A cell that nothing was shown in.
    pub fn new(column: &str, value: Value) -> Self {
        Self { column: column.to_owned(), value, replaced: None }
    }
}

/// One change, decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The row is there, and these cells have these values.
    Write {
        /// Table name.
        table: String,
        /// Primary key, in the key's column order.
        key: Vec<Value>,
        /// What the cells are.
        cells: Vec<CellWrite>,
        /// The row's newest delete, if the author saw the row deleted.
        replaced_tombstone: Option<Timestamp>,
    },
    /// The row is gone.
    Delete {
        /// Table name.
        table: String,
        /// Primary key.
        key: Vec<Value>,
        /// The messages that its author saw in the row: of each cell, and of the row.
        replaced: BTreeSet<Timestamp>,
    },
    /// The table as it is declared.
    TableDeclaration {
        /// Table name.
        table: String,
        /// Its columns and rules.
        declaration: TableDeclaration,
    },
    /// A part of a large value, [`crate::CHUNK_BYTES`] at most.
    Chunk {
        /// Whatever they are part of.
        bytes: Vec<u8>,
    },
    /// What it was is gone for good ([`Change::common_rest`]).
    Erased,
}

const VERSION: u8 = 1;
const KIND_WRITE: u8 = 1;
const KIND_DELETE: u8 = 2;
const KIND_SCHEMA: u8 = 3;
const KIND_PART: u8 = 4;
const KIND_ERASED: u8 = 5;
impl Change {
    /// The content of a message.
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

    /// Reads a message's content.
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
    /// The messages that its author saw in its place.
    pub fn replaced(&self) -> impl Iterator<Item = Timestamp> + use<'_> {
        self.replaced_in(None)
    }

    /// Those in one column, or with `None` in the row.
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

    /// Gives the messages that its author saw other names.
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

/// One group for each message that was replaced, with the places of its cells; first, without
/// places, the delete.
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
    /// What [`put_replaced`] wrote, into the cells; returns the delete.
    fn replaced(&mut self, cells: &mut [CellWrite]) -> Result<Option<Timestamp>, DecodeError> {
        let groups = self.list(|r| Ok((r.timestamp()?, r.list(Self::varint)?)))?;
        let (mut deleted, mut last) = (None, None);
        for (index, (replaced, places)) in groups.into_iter().enumerate() {
            if places.is_empty() && index == 0 {
                deleted = Some(replaced);
                continue;
            }
            // In order, so that equal changes have equal bytes.
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
