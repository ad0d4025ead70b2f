//! Represents values of SQLite's five storage classes in Format 2.

use crate::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use crate::{CHUNK_BYTES, LargeValue, chunk_digest};

/// A value of SQLite's five storage classes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The storage class NULL.
    Null,
    /// The storage class INTEGER.
    Integer(i64),
    /// The storage class REAL.
    Real(f64),
    /// The storage class TEXT, in UTF-8.
    Text(String),
    /// A TEXT that is not UTF-8: SQLite stores any bytes that a program passes. See
    /// [`Value::from_text_bytes`].
    TextBytes(Vec<u8>),
    /// The storage class BLOB.
    Blob(Vec<u8>),
    /// A TEXT or BLOB that is split into chunks.
    Large(LargeValue),
    /// A value that was erased permanently and is unknown. Tables show NULL.
    Erased,
}

impl Value {
    /// Creates a TEXT from any bytes.
    pub fn from_text_bytes(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::TextBytes(bytes.to_vec()),
        }
    }

    /// Encodes a key as one byte string, under which the state of a row is stored.
    pub fn encode_key(key: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        put_key(&mut bytes, key);
        bytes
    }

    /// Decodes the result of [`Self::encode_key`].
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
    /// Splits a value into chunks, if it is a TEXT or BLOB.
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

    /// Returns the value with these bytes.
    pub fn to_value(&self, bytes: Vec<u8>) -> Value {
        if !self.is_text {
            return Value::Blob(bytes);
        }
        String::from_utf8(bytes)
            .map_or_else(|error| Value::TextBytes(error.into_bytes()), Value::Text)
    }
}
