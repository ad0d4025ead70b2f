//! Parses the first 100 bytes of a database
//! (<https://sqlite.org/fileformat.html#the_database_header>).

use serde::Serialize;

/// The bytes with which every SQLite database begins.
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The size of the header.
pub(crate) const HEADER_SIZE: usize = 100;

/// The header fields that the doctor uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DatabaseHeader {
    pub(crate) page_size: u32,
    /// The number of bytes at the end of each page that SQLite does not use, but a cipher.
    pub(crate) reserved_size: u8,
    pub(crate) is_wal: bool,
    pub(crate) change_counter: u32,
    /// The number of pages; 0 in files of SQLite before 3.7.0, or stale: see
    /// `has_valid_page_count`.
    pub(crate) pages_count: u32,
    pub(crate) free_pages_count: u32,
    pub(crate) schema_format: u32,
    pub(crate) has_auto_vacuum: bool,
    pub(crate) is_incremental: bool,
    pub(crate) user_version: i32,
    pub(crate) application_id: i32,
    pub(crate) version_valid_for: u32,
    /// The version of the SQLite library that wrote last, such as `3045001`.
    pub(crate) sqlite_version: u32,
}

impl DatabaseHeader {
    /// Parses a header. Returns `None` if the bytes are not the header of a database.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER_SIZE || !bytes.starts_with(MAGIC) {
            return None;
        }
        let at = |offset: usize| u32_at(bytes, offset).unwrap_or_default();
        let page_size = match at(16) >> 16 {
            1 => 65_536,
            size => size,
        };
        if !page_size.is_power_of_two() || !(512..=65_536).contains(&page_size) {
            return None;
        }
        Some(Self {
            page_size,
            reserved_size: bytes[20],
            is_wal: bytes[19] == 2,
            change_counter: at(24),
            pages_count: at(28),
            free_pages_count: at(36),
            schema_format: at(44),
            has_auto_vacuum: at(52) != 0,
            is_incremental: at(64) != 0,
            user_version: at(60).cast_signed(),
            application_id: at(68).cast_signed(),
            version_valid_for: at(92),
            sqlite_version: at(96),
        })
    }

    /// Checks whether `pages_count` was written together with the rest of the header. Old versions
    /// of SQLite do not update it.
    pub(crate) const fn has_valid_page_count(&self) -> bool {
        self.pages_count > 0 && self.change_counter == self.version_valid_for
    }
}

/// Reads a big-endian number.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
}

/// Formats a version number: `3.45.1` for `3045001`.
pub(crate) fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version / 1_000_000, version / 1_000 % 1_000, version % 1_000)
}
