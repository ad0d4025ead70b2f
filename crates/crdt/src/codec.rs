//! Writes and reads the bytes of contents: numbers, texts and lists
//! (`docs/reference/formats/2-message.md`).
//!
//! # Invariants
//! - A reader accepts only the output of a writer: a number has one form.
//!
//! # Not here
//! - The meaning of the bytes → `message.rs`, `value.rs`, `declaration.rs`.

use std::collections::BTreeSet;

use crate::Timestamp;

/// SQLite's default limit on columns (`SQLITE_MAX_COLUMN`).
pub(crate) const COLUMNS_COUNT_MAX: u64 = 2_000;

/// The reason why bytes are not a content of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A later version wrote the content: keep it, an update of the program may read it.
    #[error("content version {0} is not supported")]
    Version(u8),
    /// No version writes such a content.
    #[error("malformed content")]
    Malformed,
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

pub(crate) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_varint(bytes, value.len() as u64);
    bytes.extend(value);
}

/// The rest of the input.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
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

    /// Reads a boolean: 00 or 01.
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
                // Only the shortest form is valid: no empty last group, no bits past the 64th.
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

    pub(crate) fn replaced_timestamps(&mut self) -> Result<BTreeSet<Timestamp>, DecodeError> {
        let seen = self.list(Self::timestamp)?;
        let sorted = seen.is_sorted_by(|a, b| a < b);
        sorted.then(|| seen.into_iter().collect()).ok_or(DecodeError::Malformed)
    }
}
