//! Represents values that are too large for one message: each chunk of their bytes is a message of
//! its own, and the value names its chunks by their digests
//! (`docs/reference/formats/2-message.md`).

use crate::codec::{ByteReader, DecodeError, put_varint};

/// The digest that names a chunk: BLAKE3 of its bytes.
pub type ChunkDigest = [u8; 32];

/// The bytes of each chunk except the last, which may be shorter.
pub const CHUNK_BYTES: usize = 256 << 10;

/// SQLite's default limit on a value and on a row (`SQLITE_MAX_LENGTH`).
pub const VALUE_BYTES_MAX: u64 = 1_000_000_000;

/// A TEXT or BLOB that is split into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeValue {
    /// Whether the value is a TEXT, not a BLOB.
    pub is_text: bool,
    /// The number of bytes of the whole value.
    pub length: u64,
    /// The digests of the chunks, in order.
    pub chunks: Vec<ChunkDigest>,
}

impl LargeValue {
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

/// Returns the digest of a chunk with these bytes.
pub fn chunk_digest(bytes: &[u8]) -> ChunkDigest {
    *blake3::hash(bytes).as_bytes()
}
