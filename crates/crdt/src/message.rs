//! The message and its content: one change of one row, as bytes (`docs/formats/2-message.md`).
//!
//! # Invariants
//! - `decode` accepts exactly what `encode` writes: equal changes have equal bytes.
//! - Decoding allocates no more than the input's own size.

use bytes::Bytes;

use crate::Timestamp;

/// What devices exchange: an identity and opaque bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its identity, and its place in time.
    pub timestamp: Timestamp,
    /// An encoded [`Change`]; to the server, any bytes.
    pub content: Bytes,
}

/// A value of SQLite's five storage classes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// INTEGER
    Integer(i64),
    /// REAL
    Real(f64),
    /// TEXT, UTF-8
    Text(String),
    /// BLOB
    Blob(Vec<u8>),
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
        /// Column names and values.
        cells: Vec<(String, Value)>,
    },
    /// The row is gone.
    Delete {
        /// Table name.
        table: String,
        /// Primary key.
        key: Vec<Value>,
    },
    /// The table as it is declared.
    Schema {
        /// Table name.
        table: String,
        /// `CREATE TABLE`, then `CREATE INDEX` statements.
        sql: Vec<String>,
    },
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
/// SQLite's default limit on columns (`SQLITE_MAX_COLUMN`).
const COLUMNS_COUNT_MAX: u64 = 2_000;

impl Change {
    /// The table that it is about.
    pub fn table(&self) -> &str {
        match self {
            Self::Write { table, .. } | Self::Delete { table, .. } | Self::Schema { table, .. } => {
                table
            }
        }
    }

    /// The content of a message.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(96);
        bytes.push(VERSION);
        match self {
            Self::Write { table, key, cells } => {
                bytes.push(KIND_WRITE);
                put_bytes(&mut bytes, table.as_bytes());
                put_key(&mut bytes, key);
                put_varint(&mut bytes, cells.len() as u64);
                for (column, value) in cells {
                    put_bytes(&mut bytes, column.as_bytes());
                    put_value(&mut bytes, value);
                }
            }
            Self::Delete { table, key } => {
                bytes.push(KIND_DELETE);
                put_bytes(&mut bytes, table.as_bytes());
                put_key(&mut bytes, key);
            }
            Self::Schema { table, sql } => {
                bytes.push(KIND_SCHEMA);
                put_bytes(&mut bytes, table.as_bytes());
                put_varint(&mut bytes, sql.len() as u64);
                for statement in sql {
                    put_bytes(&mut bytes, statement.as_bytes());
                }
            }
        }
        bytes.into()
    }

    /// Reads a message's content.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(content);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let kind = reader.byte()?;
        let table = reader.text()?;
        let change = match kind {
            KIND_WRITE => Self::Write {
                table,
                key: reader.list(Reader::value)?,
                cells: reader.list(|r| Ok((r.text()?, r.value()?)))?,
            },
            KIND_DELETE => Self::Delete { table, key: reader.list(Reader::value)? },
            KIND_SCHEMA => Self::Schema { table, sql: reader.list(Reader::text)? },
            _ => return Err(DecodeError::Malformed),
        };
        if reader.0.is_empty() { Ok(change) } else { Err(DecodeError::Malformed) }
    }
}

impl Value {
    /// A key as one byte string: what the state of a row is filed under.
    pub fn encode_key(key: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        put_key(&mut bytes, key);
        bytes
    }

    /// Reads [`Self::encode_key`] back.
    pub fn decode_key(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut reader = Reader(bytes);
        let key = reader.list(Reader::value)?;
        if reader.0.is_empty() { Ok(key) } else { Err(DecodeError::Malformed) }
    }
}

fn put_key(bytes: &mut Vec<u8>, key: &[Value]) {
    put_varint(bytes, key.len() as u64);
    for value in key {
        put_value(bytes, value);
    }
}

fn put_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(0),
        Value::Integer(integer) => {
            bytes.push(1);
            put_varint(bytes, ((integer << 1) ^ (integer >> 63)).cast_unsigned());
        }
        Value::Real(real) => {
            bytes.push(2);
            bytes.extend(real.to_bits().to_be_bytes());
        }
        Value::Text(text) => {
            bytes.push(3);
            put_bytes(bytes, text.as_bytes());
        }
        Value::Blob(blob) => {
            bytes.push(4);
            put_bytes(bytes, blob);
        }
    }
}

fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
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
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.take(1).map(|bytes| bytes[0])
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

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.varint()?).ok().ok_or(DecodeError::Malformed)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let text = std::str::from_utf8(self.bytes()?).ok().ok_or(DecodeError::Malformed)?;
        Ok(text.to_owned())
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.varint()?;
        if count > COLUMNS_COUNT_MAX {
            return Err(DecodeError::Malformed);
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn value(&mut self) -> Result<Value, DecodeError> {
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => {
                let zigzag = self.varint()?;
                Value::Integer((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
            }
            2 => {
                let bits = self.take(8)?.try_into().expect("took 8 bytes");
                Value::Real(f64::from_bits(u64::from_be_bytes(bits)))
            }
            3 => Value::Text(self.text()?),
            4 => Value::Blob(self.bytes()?.to_vec()),
            _ => return Err(DecodeError::Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> + Clone {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>()
                .prop_filter("NaN is NULL to SQLite", |f| !f.is_nan())
                .prop_map(Value::Real),
            any::<String>().prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
        ]
    }

    fn any_change() -> impl Strategy<Value = Change> {
        let key = prop::collection::vec(any_value(), 0..4);
        let cells = prop::collection::vec((any::<String>(), any_value()), 0..6);
        prop_oneof![
            (any::<String>(), key.clone(), cells).prop_map(|(table, key, cells)| Change::Write {
                table,
                key,
                cells
            }),
            (any::<String>(), key).prop_map(|(table, key)| Change::Delete { table, key }),
            (any::<String>(), prop::collection::vec(any::<String>(), 0..4))
                .prop_map(|(table, sql)| Change::Schema { table, sql }),
        ]
    }

    proptest! {
        #[test]
        fn every_change_round_trips(change in any_change()) {
            prop_assert_eq!(Change::decode(&change.encode()).unwrap(), change);
        }

        #[test]
        fn decoding_accepts_only_what_encoding_writes(
            change in any_change(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut bytes = change.encode().to_vec();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Ok(decoded) = Change::decode(&bytes) {
                prop_assert_eq!(&decoded.encode()[..], &bytes[..]);
            }
        }

        #[test]
        fn a_cut_or_lengthened_content_is_malformed(change in any_change(), cut in any::<prop::sample::Index>()) {
            let bytes = change.encode();
            let cut = cut.index(bytes.len());
            prop_assert_eq!(Change::decode(&bytes[..cut]), Err(DecodeError::Malformed));
            let longer = [&bytes[..], &[0]].concat();
            prop_assert_eq!(Change::decode(&longer), Err(DecodeError::Malformed));
        }

        #[test]
        fn keys_round_trip(key in prop::collection::vec(any_value(), 0..4)) {
            prop_assert_eq!(Value::decode_key(&Value::encode_key(&key)).unwrap(), key);
        }
    }

    #[test]
    fn the_bytes_are_the_documented_ones() {
        let change = Change::Write {
            table: "t".into(),
            key: vec![Value::Integer(-1)],
            cells: vec![("a".into(), Value::Null), ("b".into(), Value::Text("x".into()))],
        };
        let expected = [1, 1, 1, b't', 1, 1, 1, 2, 1, b'a', 0, 1, b'b', 3, 1, b'x'];
        assert_eq!(change.encode()[..], expected);
    }

    #[test]
    fn a_later_version_is_told_apart_from_damage() {
        assert_eq!(Change::decode(&[2, 1]), Err(DecodeError::Version(2)));
        assert_eq!(Change::decode(&[1, 9, 0]), Err(DecodeError::Malformed));
        assert_eq!(Change::decode(&[]), Err(DecodeError::Malformed));
    }

    #[test]
    fn a_count_beyond_the_limit_is_refused_before_anything_is_read() {
        let mut bytes = vec![1, 2, 1, b't'];
        put_varint(&mut bytes, COLUMNS_COUNT_MAX + 1);
        bytes.extend(std::iter::repeat_n(0, 3_000));
        assert_eq!(Change::decode(&bytes), Err(DecodeError::Malformed));
    }
}
