//! What opens an encrypted file.

use std::fmt;

use rusqlite::{Connection, ErrorCode};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// The key of a file. Zeroised on drop, never printed. The cipher is SQLite3 Multiple Ciphers' own
/// default, chacha20.
pub enum FileKey {
    /// The key itself.
    Raw(Zeroizing<[u8; 32]>),
    /// What the key is derived from: some 50 ms of processor time.
    Passphrase(Zeroizing<Vec<u8>>),
}

impl FileKey {
    /// Gives a connection that was just opened its key.
    pub fn apply_to(&self, db: &Connection) -> Result<()> {
        match self {
            Self::Raw(key) => sqlite3mc_sys::set_key(db, key)?,
            Self::Passphrase(words) => sqlite3mc_sys::set_passphrase(db, words)?,
        }
        Ok(())
    }
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileKey").finish_non_exhaustive()
    }
}

/// Reads the file's first page, which nothing before does: [`Error::WrongKey`] or, without a key,
/// [`Error::NotADatabase`] if it cannot be read.
pub fn check_key(db: &Connection, has_key: bool) -> Result<()> {
    let looked = db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    looked.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) if has_key => Error::WrongKey,
        Some(ErrorCode::NotADatabase) => Error::NotADatabase,
        _ => error.into(),
    })
}
