//! What an account may hold, where that is not what the server gives to all.
//!
//! # Not here
//! - The server's defaults, but for devices → its configuration. Refusing messages → the vault.

use rusqlite::Row as SqlRow;

/// The columns that [`from_row`] reads.
pub(crate) const COLUMNS: &str = "messages_max, bytes_max, devices_max";

pub(crate) const PASSWORD_BYTES_MIN: usize = 8;

/// Longer ones add no strength, only work for whoever reads them.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// Vaults of one account beside its own.
pub const SUB_VAULTS_COUNT_MAX: u32 = 10_000;

/// Devices of one account, unless it or the server is told otherwise.
pub const DEVICES_COUNT_DEFAULT: u32 = 500;

/// More can no account be given. A chain of this many, each registered by the one before, is still
/// deleted by one cascade: SQLite follows 1,000 levels.
pub const DEVICES_COUNT_MAX: u32 = 900;

/// An account's own limits; `None` is the server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Messages in the vault.
    pub messages_max: Option<u64>,
    /// Bytes of their contents.
    pub bytes_max: Option<u64>,
    /// Devices; at most [`crate::DEVICES_COUNT_MAX`].
    pub devices_max: Option<u32>,
}

/// Reads [`COLUMNS`], the first of which is column number `first`.
pub(crate) fn from_row(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<AccountLimits> {
    let (messages_max, bytes_max): (Option<i64>, Option<i64>) =
        (row.get(first)?, row.get(first + 1)?);
    Ok(AccountLimits {
        messages_max: messages_max.map(i64::cast_unsigned),
        bytes_max: bytes_max.map(i64::cast_unsigned),
        devices_max: row.get(first + 2)?,
    })
}
