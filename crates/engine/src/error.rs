//! Defines the engine's errors, with one variant for each failure that a caller may act on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};

/// The result of an engine call; its error is an [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine. Its message contains no keys and no row contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key does not open the file: the key or the cipher is wrong, or the file is not a
    /// database. Without a key, the error is [`Self::NotADatabase`].
    #[error("cannot open {} with this key", path.display())]
    WrongKey {
        /// The path of the file.
        path: PathBuf,
    },
    /// No key was given, and the file is encrypted or is not a database.
    #[error("{} is not a SQLite database, or it is encrypted", path.display())]
    NotADatabase {
        /// The path of the file.
        path: PathBuf,
    },
    /// A key was given for a file that is not encrypted.
    #[error("{} is not encrypted, but a key was given", path.display())]
    NotEncrypted {
        /// The path of the file.
        path: PathBuf,
    },
    /// A PRAGMA had no effect: SQLite reports another value than the one that was set.
    #[error("PRAGMA {pragma} should be {wanted}, but is {found}")]
    PragmaNotApplied {
        /// The name of the PRAGMA.
        pragma: &'static str,
        /// The value that the PRAGMA should read back as.
        wanted: String,
        /// The value that was read, or the reason why the setting has no effect.
        found: String,
    },
    /// The file was written by a later version of the program.
    #[error("schema version {found} is too new (newest supported: {known})")]
    SchemaTooNew {
        /// The `user_version` of the file.
        found: u32,
        /// The version of the last migration.
        known: u32,
    },
    /// The file was written by an earlier version of the program, which this one no longer reads.
    #[error("schema version {found} is no longer supported (oldest supported: {oldest})")]
    SchemaTooOld {
        /// The `user_version` of the file.
        found: u32,
        /// The version of the first migration.
        oldest: u32,
    },
    /// A limit is reached, or another program holds the write lock. Nothing was done; the call can
    /// be repeated later.
    #[error("busy")]
    Busy,
    /// The batch of this transaction was rolled back as a whole. None of its changes are stored.
    #[error("rolled back with its batch: {cause}")]
    RolledBack {
        /// The reason why SQLite rolled the batch back.
        cause: Arc<str>,
    },
    /// The disk is full. Nothing is stored; the same write may succeed once space is free.
    #[error("the disk is full: {cause}")]
    DiskFull {
        /// The error that SQLite returned.
        cause: Arc<str>,
    },
    /// A commit, a flush or a checkpoint failed, so the content of the disk is uncertain: a write
    /// that fails with this error may or may not be stored. The database refuses writes until it
    /// has recovered, which it attempts automatically.
    #[error("the database refuses writes until it has recovered: {cause}")]
    Poisoned {
        /// The failure after which the database refuses writes.
        cause: Arc<str>,
    },
    /// The profile never flushes, so writes cannot be made durable. Nothing was done.
    #[error("profile {profile} never flushes, so writes cannot be durable")]
    NeverFlushed {
        /// The name of the profile.
        profile: &'static str,
    },
    /// SQLite could open the file or its WAL only for reading.
    #[error("{} is read-only", path.display())]
    ReadOnly {
        /// The path of the file.
        path: PathBuf,
    },
    /// The disk has too little free space for a compact copy. Nothing was done.
    #[error("{} has {free} bytes free, but {needed} are needed", path.display())]
    NotEnoughSpace {
        /// The directory that would contain the copy.
        path: PathBuf,
        /// The number of bytes that must be free.
        needed: u64,
        /// The number of bytes that are free.
        free: u64,
    },
    /// A compact copy differs from the original, which stays in place: the original or the disk is
    /// damaged.
    #[error("a copy of the file differs from the file: {what}")]
    CopyDiffers {
        /// The path of the copy.
        path: PathBuf,
        /// The first difference that was found.
        what: String,
    },
    /// The file is damaged, and an earlier damaged file is still quarantined. Nothing was done.
    #[error("{} is damaged, and an earlier .damaged file still exists next to it", path.display())]
    AlreadyQuarantined {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file was opened, closed or replaced during each attempt to copy it. No copy was created.
    #[error(
        "{} was opened, closed or replaced during each of {attempts_count} attempts to copy it",
        path.display()
    )]
    CopyOvertaken {
        /// The path of the file.
        path: PathBuf,
        /// The number of attempts.
        attempts_count: u32,
    },
    /// The program that owns the rows could not complete a repair. Nothing was quarantined.
    #[error("cannot complete a repair: {source}")]
    Application {
        /// The error that the program returned.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The transaction's closure panicked. Only this transaction was rolled back.
    #[error("the transaction panicked")]
    Panicked,
    /// The database or the whole registry was closed, or a panic ended the batch of the
    /// transaction. After a panic, the transaction may or may not be stored.
    #[error("the database is closed")]
    Closed,
    /// SQLite returned an error.
    #[error("{context}: {source}")]
    Sqlite {
        /// The operation that failed.
        context: &'static str,
        /// The error that SQLite returned.
        source: rusqlite::Error,
    },
    /// The operating system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
        source: std::io::Error,
    },
}

impl Error {
    fn from_sqlite(context: &'static str, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                Self::DiskFull { cause: format!("{context}: {source}").into() }
            }
            _ => Self::Sqlite { context, source },
        }
    }

    /// Checks whether the same call may succeed later, once the disk, other processes or the limits
    /// of this process allow it. The database then recovers automatically.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Busy
            | Self::Closed
            | Self::CopyOvertaken { .. }
            | Self::DiskFull { .. }
            | Self::Poisoned { .. }
            | Self::ReadOnly { .. }
            | Self::RolledBack { .. } => true,
            Self::Sqlite { source, .. } => {
                // A scrub of the database then finds the damage, which is repaired where possible.
                is_io(source)
                    || is_damage(source)
                    || source.sqlite_error_code() == Some(ErrorCode::CannotOpen)
            }
            Self::Io { source, .. } => {
                use rustix::io::Errno;

                let errnos = [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOSPC, Errno::NOMEM];
                errnos.iter().any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
            }
            _ => false,
        }
    }

    /// Checks whether a file does not read back as it was written, or does not open with its key.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::WrongKey { .. } | Self::NotADatabase { .. } => true,
            Self::Sqlite { source, .. } => is_damage(source),
            _ => false,
        }
    }

    /// Checks whether a read, write or flush of a file failed in a way that leaves the content of
    /// the disk uncertain.
    pub(crate) fn is_io(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if is_io(source))
    }
}

/// Checks whether an error means that a part of a file does not read back as it was written: its
/// content is wrong, or the disk has lost it.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| is_damage_code(*error))
}

pub(crate) fn is_damage_code(error: ffi::Error) -> bool {
    matches!(error.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        || matches!(
            error.extended_code,
            ffi::SQLITE_IOERR_READ
                | ffi::SQLITE_IOERR_SHORT_READ
                | ffi::SQLITE_IOERR_DATA
                | ffi::SQLITE_IOERR_CORRUPTFS
        )
}

/// Checks whether an error is `SQLITE_IOERR` or one of its extended codes.
pub(crate) fn is_io(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::from_sqlite("statement", source)
    }
}

/// Returns a function for `map_err` that adds the failed operation to an SQLite error.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::from_sqlite(context, source)
}

/// Returns a function for `map_err` that adds the path to an I/O error.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// Checks whether another connection's lock blocks the operation.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
