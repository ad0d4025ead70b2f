//! Values that are too large for one message: each part of their bytes is a message of its own, and
//! the value names its parts by their digests (`docs/formats/2-message.md`).

use crate::Value;
use crate::message::{ByteReader, DecodeError, put_varint};

/// What a part is named by: BLAKE3 of its bytes.
pub type ChunkDigest = [u8; 32];

/// Bytes of each part but the last.
pub const CHUNK_BYTES: usize = 256 << 10;

/// SQLite's default limit on a value and on a row (`SQLITE_MAX_LENGTH`).
pub const VALUE_BYTES_MAX: u64 = 1_000_000_000;

/// A TEXT or BLOB by its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeValue {
    /// TEXT, not BLOB.
    pub is_text: bool,
    /// Bytes of the whole.
    pub length: u64,
    /// In order.
    pub chunks: Vec<ChunkDigest>,
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

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(if self.is_text { 3 } else { 4 });
        put_varint(bytes, self.length);
        bytes.extend(self.chunks.as_flattened());
    }

    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        let is_text = match reader.byte()? {
            3 => true,
            4 => false,
            _ => return Err(DecodeError::Malformed),
        };
        let length = reader.varint()?;
        if length == 0 || length > VALUE_BYTES_MAX {
            return Err(DecodeError::Malformed);
        }
        let count = length.div_ceil(CHUNK_BYTES as u64);
        let chunks = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        Ok(Self { is_text, length, chunks })
    }
}

/// What a part with these bytes is named by.
pub fn chunk_digest(bytes: &[u8]) -> ChunkDigest {
    *blake3::hash(bytes).as_bytes()
}
