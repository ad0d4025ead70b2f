//! Opens encrypted files with a raw key or a passphrase.

use std::fmt;

use rusqlite::{Connection, ErrorCode};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// The key of an encrypted file. It is zeroed on drop and never printed. The cipher is the default
/// of SQLite3 Multiple Ciphers, chacha20.
pub enum FileKey {
    /// The key itself.
    Raw(Zeroizing<[u8; 32]>),
    /// A passphrase from which the key is derived, in some 50 ms of processor time.
    Passphrase(Zeroizing<Vec<u8>>),
}

impl FileKey {
    /// Sets the key of a connection that was just opened.
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

/// Checks the key by reading the file's first page, which nothing has read before.
///
/// # Errors
/// [`Error::WrongKey`] if the page cannot be read with the key, [`Error::NotADatabase`] if it
/// cannot be read without one.
pub fn check_key(db: &Connection, has_key: bool) -> Result<()> {
    let looked = db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    looked.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) if has_key => Error::WrongKey,
        Some(ErrorCode::NotADatabase) => Error::NotADatabase,
        _ => error.into(),
    })
}
