//! An account's own limits, which override the server's defaults.
//!
//! # Not here
//! - The server's defaults, except for devices → its configuration. Refusing messages → the vault.

use rusqlite::Row as SqlRow;

/// The columns that [`from_row`] reads.
pub(crate) const COLUMNS: &str = "messages_max, bytes_max, devices_max, mail_bytes_max";

/// The number of [`COLUMNS`].
pub(crate) const COLUMNS_COUNT: usize = 4;

pub(crate) const PASSWORD_BYTES_MIN: usize = 8;

/// The maximum length of a password. Longer ones add no strength, only work for the server.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// The maximum number of sub-vaults of one account.
pub const SUB_VAULTS_COUNT_MAX: u32 = 10_000;

/// The maximum number of mail addresses of one account.
pub const MAIL_ADDRESSES_COUNT_MAX: u32 = 1_000;

/// The maximum number of mail passwords of one account: one for each mail program.
pub const MAIL_PASSWORDS_COUNT_MAX: u32 = 100;

/// The maximum length of the name of a mail password.
pub const MAIL_PASSWORD_NAME_BYTES_MAX: usize = 100;

/// The default maximum number of devices of one account.
pub const DEVICES_COUNT_DEFAULT: u32 = 500;

/// The maximum device limit of any account. A chain of this many devices, each registered by the
/// one before, is still deleted by one cascade: SQLite follows 1,000 levels.
pub const DEVICES_COUNT_MAX: u32 = 900;

/// An account's own limits; `None` means the server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// The maximum number of messages in the vault.
    pub messages_max: Option<u64>,
    /// The maximum size of the messages' contents in bytes.
    pub bytes_max: Option<u64>,
    /// The maximum number of devices; at most [`crate::DEVICES_COUNT_MAX`].
    pub devices_max: Option<u32>,
    /// The maximum size of the account's mail in bytes, as it is stored.
    pub mail_bytes_max: Option<u64>,
}

/// Reads [`COLUMNS`], the first of which is column number `first`.
pub(crate) fn from_row(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<AccountLimits> {
    let limit =
        |column: usize| row.get(column).map(|limit: Option<i64>| limit.map(i64::cast_unsigned));
    Ok(AccountLimits {
        messages_max: limit(first)?,
        bytes_max: limit(first + 1)?,
        devices_max: row.get(first + 2)?,
        mail_bytes_max: limit(first + 3)?,
    })
}
