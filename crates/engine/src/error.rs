//! Everything that can go wrong in the engine, one variant per thing that a caller may act on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An engine error. Messages hold no keys and no row contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key does not open the file: another key, another cipher, or not a database at all.
    /// Without a key, it is [`Self::NotADatabase`].
    #[error("cannot open {} with this key", path.display())]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// No key was given, and the file is encrypted, or not a database at all.
    #[error("{} is not a SQLite database, or it is encrypted", path.display())]
    NotADatabase {
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
    #[error("schema version {found} is too new (newest supported: {known})")]
    SchemaTooNew {
        /// The file's `user_version`.
        found: u32,
        /// The last migration's version.
        known: u32,
    },
    /// The file was written by an earlier version of the program, which this one no longer reads.
    #[error("schema version {found} is no longer supported (oldest supported: {oldest})")]
    SchemaTooOld {
        /// The file's `user_version`.
        found: u32,
        /// The first migration's version.
        oldest: u32,
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
    /// The disk is full. Nothing is stored; the same write may succeed when there is room.
    #[error("the disk is full: {cause}")]
    DiskFull {
        /// What SQLite said.
        cause: Arc<str>,
    },
    /// A commit, a flush or a checkpoint failed, so what is on the disk is uncertain: a write that
    /// hears this is stored or not. No more writes until the database has recovered, which it tries
    /// by itself.
    #[error("the database refuses writes until it has recovered: {cause}")]
    Poisoned {
        /// What failed.
        cause: Arc<str>,
    },
    /// The profile never flushes, so that a write cannot be made durable. Nothing was done.
    #[error("profile {profile} never flushes, so writes cannot be durable")]
    NeverFlushed {
        /// The profile's name.
        profile: &'static str,
    },
    /// SQLite could open the file, or its WAL, only for reading.
    #[error("{} is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// There is too little room on the disk for a compact copy. Nothing was done.
    #[error("{} has {free} bytes free, but {needed} are needed", path.display())]
    NotEnoughSpace {
        /// The directory that the copy would be in.
        path: PathBuf,
        /// Bytes that must be free.
        needed: u64,
        /// Bytes that are.
        free: u64,
    },
    /// A compact copy is not what the original is, which stays: the original is damaged, or the
    /// disk.
    #[error("a copy of the file differs from the file: {what}")]
    CopyDiffers {
        /// The copy.
        path: PathBuf,
        /// The first thing that differs.
        what: String,
    },
    /// The file is damaged, and a damaged file was quarantined before: nothing was done.
    #[error("{} is damaged, and an earlier .damaged file still exists next to it", path.display())]
    AlreadyQuarantined {
        /// The file.
        path: PathBuf,
    },
    /// The file was opened, closed or replaced during each attempt to copy it. No copy was made.
    #[error(
        "{} was opened, closed or replaced during each of {attempts_count} attempts to copy it",
        path.display()
    )]
    CopyOvertaken {
        /// The file.
        path: PathBuf,
        /// How often it was tried.
        attempts_count: u32,
    },
    /// The program that owns the rows could not complete a repair. Nothing was quarantined.
    #[error("cannot complete a repair: {source}")]
    Application {
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The transaction's closure panicked. It was rolled back alone.
    #[error("the transaction panicked")]
    Panicked,
    /// The database, or the whole registry, was closed; or a panic took the batch that a transaction
    /// was in, which is then stored or not.
    #[error("the database is closed")]
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

impl Error {
    fn from_sqlite(context: &'static str, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                Self::DiskFull { cause: format!("{context}: {source}").into() }
            }
            _ => Self::Sqlite { context, source },
        }
    }

    /// Whether the same call may succeed later, when the disk, other processes or the limits of this
    /// one let it; the database then recovers by itself.
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
                // A database that looks for damage finds it then, and is repaired where it can be.
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

    /// Whether a file is not as it was written, or does not open with its key.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::WrongKey { .. } | Self::NotADatabase { .. } => true,
            Self::Sqlite { source, .. } => is_damage(source),
            _ => false,
        }
    }

    /// Whether a read, a write or a flush of a file failed in a way that leaves open what is on the
    /// disk.
    pub(crate) fn is_io(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if is_io(source))
    }
}

/// Whether an error says that something in a file does not read back as it was written: its content,
/// or the disk has it no more.
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

/// `SQLITE_IOERR`, with all that belongs to it.
pub(crate) fn is_io(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::from_sqlite("statement", source)
    }
}

/// For `map_err`: an SQLite error, with what was being done.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::from_sqlite(context, source)
}

/// For `map_err`: an I/O error, with the path that it is about.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// Whether another connection's lock is in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
