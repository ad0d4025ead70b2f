//! Why a file could not be examined at all. What is wrong *in* a file is a finding, not an error.

use std::path::{Path, PathBuf};

use crate::catalogue::finding_code::FindingCode;

/// The doctor's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the examination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("file not found: {}", .0.display())]
    FileNotFound(PathBuf),
    /// A directory, a pipe, a device.
    #[error("not a regular file: {}", .0.display())]
    NotAFile(PathBuf),
    /// This user may not read it.
    #[error("no permission to read {}", .0.display())]
    NoPermission(PathBuf),
    /// It does not begin as an SQLite file does, and no key was given.
    #[error("{} is not a SQLite database, or it is encrypted", .0.display())]
    NotADatabase(PathBuf),
    /// The key does not open it, or it is none.
    #[error(transparent)]
    WrongKey(engine::Error),
    /// A query that was given is not understood.
    #[error("invalid query {sql:?}: {source}")]
    InvalidQuery {
        /// The query.
        sql: String,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// What a snippet printed is not understood.
    #[error("invalid settings (line {line}): {why}")]
    InvalidSettings {
        /// From 1.
        line: usize,
        /// What is wrong there.
        why: String,
    },
    /// Somebody must decide first, or there is nothing that could be executed.
    #[error("{code} cannot be fixed automatically: {why}")]
    NotFixable {
        /// The finding's.
        code: FindingCode,
        /// What to do instead.
        why: String,
    },
    /// The file was not well after the fix, and is as it was.
    #[error("the fix for {code} failed, and the file is unchanged: {why}")]
    FixFailed {
        /// The finding's.
        code: FindingCode,
        /// What was wrong.
        why: String,
    },
    /// Programs have the file open.
    #[error("the file is open in {0}")]
    InUse(String),
    /// There is no room for a copy of the file.
    #[error(
        "not enough space for a copy of the file, which is required before a fix: {needed} bytes \
         needed, {free} bytes free"
    )]
    NoRoom {
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    /// Nothing was fixed, or it was undone.
    #[error("nothing to undo: there is no copy of {} from before a fix", .0.display())]
    NoUndo(PathBuf),
    /// A new file would have this name.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// Nothing in it looks like a page of a database.
    #[error("{}: no part of the file looks like a SQLite database", .0.display())]
    NothingRecovered(PathBuf),
    /// Of all its pages none can be read with this key.
    #[error(
        "{}: no page can be read with this key. The key or the cipher is wrong, or the first 16 \
         bytes of the file are lost (passphrases and sqlcipher need them to derive the key)",
        .0.display()
    )]
    NothingReadable(PathBuf),
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

/// For `map_err`: an SQLite error, with what was being done.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { context, source }
}

/// For `map_err`: an I/O error, with the path that it is about.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::FileNotFound(path),
        std::io::ErrorKind::PermissionDenied => Error::NoPermission(path),
        _ => Error::Io { path, source },
    }
}
