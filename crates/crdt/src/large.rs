//! Values that are too large for one message: each part of their bytes is a message of its own, and
//! the value names its parts by their digests (`docs/formats/2-message.md`).

use crate::Value;
use crate::message::{DecodeError, Reader, put_varint};

/// What a part is named by: BLAKE3 of its bytes.
pub type PartDigest = [u8; 32];

/// Bytes of each part but the last.
pub const PART_BYTES: usize = 256 << 10;

/// SQLite's default limit on a value and on a row (`SQLITE_MAX_LENGTH`).
pub const VALUE_BYTES_MAX: u64 = 1_000_000_000;

/// A TEXT or BLOB by its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// TEXT, not BLOB.
    pub is_text: bool,
    /// Bytes of the whole.
    pub length: u64,
    /// In order.
    pub parts: Vec<PartDigest>,
}

impl Large {
    /// The value's parts, if it has bytes.
    pub fn of(value: &Value) -> Option<Self> {
        let (is_text, bytes) = match value {
            Value::Text(text) => (true, text.as_bytes()),
            Value::TextBytes(text) => (true, &text[..]),
            Value::Blob(blob) => (false, &blob[..]),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Large(_) | Value::Erased => {
                return None;
            }
        };
        let parts = bytes.chunks(PART_BYTES).map(part_digest).collect();
        Some(Self { is_text, length: bytes.len() as u64, parts })
    }

    /// The value of these bytes.
    pub fn value(&self, bytes: Vec<u8>) -> Value {
        if !self.is_text {
            return Value::Blob(bytes);
        }
        String::from_utf8(bytes)
            .map_or_else(|error| Value::TextBytes(error.into_bytes()), Value::Text)
    }

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(if self.is_text { 3 } else { 4 });
        put_varint(bytes, self.length);
        bytes.extend(self.parts.as_flattened());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let is_text = match reader.byte()? {
            3 => true,
            4 => false,
            _ => return Err(DecodeError::Malformed),
        };
        let length = reader.varint()?;
        if length == 0 || length > VALUE_BYTES_MAX {
            return Err(DecodeError::Malformed);
        }
        let count = length.div_ceil(PART_BYTES as u64);
        let parts = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        Ok(Self { is_text, length, parts })
    }
}

/// What a part with these bytes is named by.
pub fn part_digest(bytes: &[u8]) -> PartDigest {
    *blake3::hash(bytes).as_bytes()
}
