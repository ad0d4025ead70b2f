//! Defines the reasons why a file cannot be examined. A problem *in* a file is a finding, not an
//! error.

use std::path::{Path, PathBuf};

use crate::catalogue::finding_code::FindingCode;

/// The result type of the doctor.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that prevents the examination, fix or recovery of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not exist.
    #[error("file not found: {}", .0.display())]
    FileNotFound(PathBuf),
    /// The path is a directory, a pipe or a device.
    #[error("not a regular file: {}", .0.display())]
    NotAFile(PathBuf),
    /// This user may not read the file.
    #[error("no permission to read {}", .0.display())]
    NoPermission(PathBuf),
    /// The file does not begin like an SQLite file, and no key was given.
    #[error("{} is not a SQLite database, or it is encrypted", .0.display())]
    NotADatabase(PathBuf),
    /// The key does not open the file, or the file is not encrypted.
    #[error(transparent)]
    WrongKey(engine::Error),
    /// SQLite does not accept a query that was given.
    #[error("invalid query {sql:?}: {source}")]
    InvalidQuery {
        /// The text of the query.
        sql: String,
        /// The error that SQLite returned.
        source: rusqlite::Error,
    },
    /// The settings that a snippet printed cannot be parsed.
    #[error("invalid settings (line {line}): {why}")]
    InvalidSettings {
        /// The line number, from 1.
        line: usize,
        /// The problem in this line.
        why: String,
    },
    /// The fix needs a decision first, or contains nothing that can be executed.
    #[error("{code} cannot be fixed automatically: {why}")]
    NotFixable {
        /// The code of the finding.
        code: FindingCode,
        /// The reason, and what to do instead.
        why: String,
    },
    /// The file still had a problem after the fix, and was restored.
    #[error("the fix for {code} failed, and the file is unchanged: {why}")]
    FixFailed {
        /// The code of the finding.
        code: FindingCode,
        /// The problem that was found.
        why: String,
    },
    /// Other programs have the file open.
    #[error("the file is open in {0}")]
    InUse(String),
    /// The disk has no space for a copy of the file.
    #[error(
        "not enough space for a copy of the file, which is required before a fix: {needed} bytes \
         needed, {free} bytes free"
    )]
    NoRoom {
        /// The required space in bytes.
        needed: u64,
        /// The free space in bytes.
        free: u64,
    },
    /// There is no copy: nothing was fixed, or the fix was already undone.
    #[error("nothing to undo: there is no copy of {} from before a fix", .0.display())]
    NoUndo(PathBuf),
    /// A file with the name of the new file already exists.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// No part of the file looks like a page of a database.
    #[error("{}: no part of the file looks like a SQLite database", .0.display())]
    NothingRecovered(PathBuf),
    /// None of the file's pages can be read with this key.
    #[error(
        "{}: no page can be read with this key. The key or the cipher is wrong, or the first 16 \
         bytes of the file are lost (passphrases and sqlcipher need them to derive the key)",
        .0.display()
    )]
    NothingReadable(PathBuf),
    /// The engine returned an error.
    #[error(transparent)]
    Engine(#[from] engine::Error),
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
        /// The file or directory.
        path: PathBuf,
        /// The error that the operating system returned.
        source: std::io::Error,
    },
}

/// Returns a function for `map_err` that adds to an SQLite error the operation that failed.
pub(crate) fn sqlite(context: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { context, source }
}

/// Returns a function for `map_err` that adds to an I/O error the path that it concerns.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::FileNotFound(path),
        std::io::ErrorKind::PermissionDenied => Error::NoPermission(path),
        _ => Error::Io { path, source },
    }
}
