//! Values: SQLite's five storage classes as Format 2 writes them.

use crate::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use crate::{CHUNK_BYTES, LargeValue, chunk_digest};

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
    /// TEXT that is not UTF-8: SQLite keeps what a program gives it. See
    /// [`Value::from_text_bytes`].
    TextBytes(Vec<u8>),
    /// BLOB
    Blob(Vec<u8>),
    /// TEXT or BLOB, by its parts.
    Large(LargeValue),
    /// It was taken out for good: nobody knows what it was. A table shows NULL.
    Erased,
}

impl Value {
    /// TEXT of these bytes, whatever they are.
    pub fn from_text_bytes(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::TextBytes(bytes.to_vec()),
        }
    }

    /// A key as one byte string: what the state of a row is filed under.
    pub fn encode_key(key: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        put_key(&mut bytes, key);
        bytes
    }

    /// Reads [`Self::encode_key`] back.
    pub fn decode_key(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut reader = ByteReader(bytes);
        let key = reader.list(ByteReader::value)?;
        if reader.0.is_empty() { Ok(key) } else { Err(DecodeError::Malformed) }
    }
}

pub(crate) fn put_key(bytes: &mut Vec<u8>, key: &[Value]) {
    put_varint(bytes, key.len() as u64);
    for value in key {
        put_value(bytes, value);
    }
}

pub(crate) fn put_value(bytes: &mut Vec<u8>, value: &Value) {
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
        Value::TextBytes(text) => {
            bytes.push(5);
            put_bytes(bytes, text);
        }
        Value::Blob(blob) => {
            bytes.push(4);
            put_bytes(bytes, blob);
        }
        Value::Large(large) => {
            bytes.push(6);
            large.put(bytes);
        }
        Value::Erased => bytes.push(7),
    }
}

impl ByteReader<'_> {
    pub(crate) fn value(&mut self) -> Result<Value, DecodeError> {
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => {
                let zigzag = self.varint()?;
                Value::Integer((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
            }
            2 => {
                let bits = self.array()?;
                Value::Real(f64::from_bits(u64::from_be_bytes(bits)))
            }
            3 => Value::Text(self.text()?),
            4 => Value::Blob(self.bytes()?.to_vec()),
            5 => match Value::from_text_bytes(self.bytes()?) {
                value @ Value::TextBytes(_) => value,
                _ => return Err(DecodeError::Malformed),
            },
            6 => Value::Large(LargeValue::read(self)?),
            7 => Value::Erased,
            _ => return Err(DecodeError::Malformed),
        })
    }
}

impl LargeValue {
    /// The value's parts, if it has bytes.
    pub fn from_value(value: &Value) -> Option<Self> {
        let (is_text, bytes) = match value {
            Value::Text(text) => (true, text.as_bytes()),
            Value::TextBytes(text) => (true, &text[..]),
            Value::Blob(blob) => (false, &blob[..]),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Large(_) | Value::Erased => {
                return None;
            }
        };
        let chunks = bytes.chunks(CHUNK_BYTES).map(chunk_digest).collect();
        Some(Self { is_text, length: bytes.len() as u64, chunks })
    }

    /// The value of these bytes.
    pub fn to_value(&self, bytes: Vec<u8>) -> Value {
        if !self.is_text {
            return Value::Blob(bytes);
        }
        String::from_utf8(bytes)
            .map_or_else(|error| Value::TextBytes(error.into_bytes()), Value::Text)
    }
}
