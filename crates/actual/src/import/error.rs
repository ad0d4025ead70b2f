//! The errors of an import.

use std::path::{Path, PathBuf};

/// The reason why an import failed. The message contains the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The directories do not contain a server's files.
    #[error(
        "{} is missing: pass the directory with the old server's server-files and user-files",
        .0.display()
    )]
    Missing(PathBuf),
    /// The release is from before users or before login methods.
    #[error(
        "{} is from an older release without {missing}: start the newest release of the old \
         server on it once to upgrade it, then stop the server",
        path.display()
    )]
    TooOld {
        /// The account file.
        path: PathBuf,
        /// The missing table or column.
        missing: &'static str,
    },
    /// No password was ever set, or users log in with `OpenID` only.
    #[error(
        "the old server has no password; a server with only OpenID login cannot be imported: set \
         a password first"
    )]
    NoPassword,
    /// The password is not the old server's.
    #[error("wrong password for the old server")]
    WrongPassword,
    /// A file of the old server does not open, or has unexpected contents.
    #[error("{}: {source}", path.display())]
    Old {
        /// The path of the file.
        path: PathBuf,
        /// The error of SQLite.
        source: engine::Error,
    },
    /// A file of the old server cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The data directory's accounts returned an error.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// A vault returned an error.
    #[error(transparent)]
    Store(#[from] sync_store::Error),
}

impl ImportError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(super) fn old<E: Into<engine::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::Old { path, source: source.into() }
    }
}
