//! The message and its content: one change of one row, as bytes (`docs/formats/2-message.md`).
//!
//! # Invariants
//! - `decode` accepts exactly what `encode` writes: equal changes have equal bytes.
//! - Decoding allocates no more than the input's own size.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

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

/// Bytes that are no content of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a later version: keep it, an update of the program may read it.
    #[error("content version {0} is not known here")]
    Version(u8),
    /// Not what any version writes.
    #[error("malformed content")]
    Malformed,
}

const VERSION: u8 = 1;
const KIND_WRITE: u8 = 1;
const KIND_DELETE: u8 = 2;
const KIND_SCHEMA: u8 = 3;
const KIND_PART: u8 = 4;
const KIND_ERASED: u8 = 5;
/// SQLite's default limit on columns (`SQLITE_MAX_COLUMN`).
const COLUMNS_COUNT_MAX: u64 = 2_000;

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

pub(crate) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_varint(bytes, value.len() as u64);
    bytes.extend(value);
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// What is left of the input.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N).map(|bytes| bytes.try_into().expect("took as many"))
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// 00 or 01.
    pub(crate) fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Malformed),
        }
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp, DecodeError> {
        Timestamp::from_bytes(self.take(Timestamp::BYTES)?).ok().ok_or(DecodeError::Malformed)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte < 0x80 {
                // The shortest form only: no empty last group, no bits past the 64th.
                let shortest = (bits != 0 || shift == 0) && value >> shift == bits;
                return if shortest { Ok(value) } else { Err(DecodeError::Malformed) };
            }
        }
        Err(DecodeError::Malformed)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.varint()?).ok().ok_or(DecodeError::Malformed)?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        let text = std::str::from_utf8(self.bytes()?).ok().ok_or(DecodeError::Malformed)?;
        Ok(text.to_owned())
    }

    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.varint()?;
        if count > COLUMNS_COUNT_MAX {
            return Err(DecodeError::Malformed);
        }
        (0..count).map(|_| item(self)).collect()
    }

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

    fn replaced_timestamps(&mut self) -> Result<BTreeSet<Timestamp>, DecodeError> {
        let seen = self.list(Self::timestamp)?;
        let sorted = seen.is_sorted_by(|a, b| a < b);
        sorted.then(|| seen.into_iter().collect()).ok_or(DecodeError::Malformed)
    }
}

#[cfg(test)]
mod tests;
