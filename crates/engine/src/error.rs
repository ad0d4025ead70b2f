//! Everything that can go wrong in the engine, one variant per thing that a caller may act on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An engine error. Messages hold no keys and no row contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key does not open the file: another key, another cipher, or not a database at all.
    #[error("{} does not open with this key", path.display())]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// A key was given for a file that is not encrypted.
    #[error("{} is not encrypted, but a key was given", path.display())]
    NotEncrypted {
        /// The file.
        path: PathBuf,
    },
    /// A setting did not take: SQLite reports another value than the one that was set.
    #[error("PRAGMA {pragma} should be {wanted}, but is {found}")]
    PragmaNotApplied {
        /// The setting's name.
        pragma: &'static str,
        /// The value that it should read back as.
        wanted: String,
        /// What it is, or why it cannot be.
        found: String,
    },
    /// The file was written by a later version of the program.
    #[error("the schema is version {found}, and this program knows up to {known}")]
    SchemaTooNew {
        /// The file's `user_version`.
        found: u32,
        /// The last migration's version.
        known: u32,
    },
    /// A limit is reached, or another program holds the write lock. Nothing was done; try again
    /// later.
    #[error("busy")]
    Busy,
    /// The batch that this transaction was in was rolled back as a whole. Nothing of it is stored.
    #[error("rolled back with its batch: {cause}")]
    RolledBack {
        /// What made SQLite give up the batch.
        cause: Arc<str>,
    },
    /// A commit failed, so what is on the disk is uncertain: no writes until the database is
    /// reopened.
    #[error("no writes until the database is reopened: {cause}")]
    Poisoned {
        /// How the commit failed.
        cause: Arc<str>,
    },
    /// There is too little room on the disk for a compact copy. Nothing was done.
    #[error("{} has {free} bytes free, but {needed} are needed", path.display())]
    NoRoom {
        /// The directory that the copy would be in.
        path: PathBuf,
        /// Bytes that must be free.
        needed: u64,
        /// Bytes that are.
        free: u64,
    },
    /// A compact copy is not what the original is, which stays: the original is damaged, or the
    /// disk.
    #[error("a copy of the file is not like the file itself: {what}")]
    CopyDiffers {
        /// The copy.
        path: PathBuf,
        /// The first thing that differs.
        what: String,
    },
    /// The transaction's closure panicked. It was rolled back alone.
    #[error("the transaction panicked")]
    Panicked,
    /// The database, or the whole registry, was closed.
    #[error("closed")]
    Closed,
    /// SQLite said no.
    #[error("{context}: {source}")]
    Sqlite {
        /// What was being done.
        context: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The operating system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite { context: "statement", source }
    }
}

/// For `map_err`: an SQLite error, with what was being done.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { context, source }
}

/// For `map_err`: an I/O error, with the path that it is about.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}
