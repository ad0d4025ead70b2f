//! Why a file could not be examined at all. What is wrong *in* a file is a finding, not an error.

use std::path::{Path, PathBuf};

/// The doctor's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the examination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{}: no such file", .0.display())]
    NotFound(PathBuf),
    /// A directory, a pipe, a device.
    #[error("{}: not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// This user may not read it.
    #[error("{}: no permission to read it", .0.display())]
    NoPermission(PathBuf),
    /// It does not begin as an SQLite file does, and no key was given.
    #[error(
        "{}: not an SQLite database, or an encrypted one: for that, give --key-file or --passphrase-file",
        .0.display()
    )]
    NotADatabase(PathBuf),
    /// The key does not open it, or it is none.
    #[error("{0}")]
    WrongKey(engine::Error),
    /// A query that was given is not understood.
    #[error("--query {sql:?}: {source}")]
    InvalidQuery {
        /// The query.
        sql: String,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] engine::Error),
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
        /// What it said.
        source: std::io::Error,
    },
}

impl Error {
    /// For programs; stable.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::NotAFile(_) => "not_a_file",
            Self::NoPermission(_) => "no_permission",
            Self::NotADatabase(_) => "not_a_database",
            Self::WrongKey(_) => "wrong_key",
            Self::InvalidQuery { .. } => "invalid_query",
            Self::Engine(_) | Self::Sqlite { .. } | Self::Io { .. } => "failed",
        }
    }
}

/// For `map_err`: an SQLite error, with what was being done.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { context, source }
}

/// For `map_err`: an I/O error, with the path that it is about.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(path),
        std::io::ErrorKind::PermissionDenied => Error::NoPermission(path),
        _ => Error::Io { path, source },
    }
}
