//! Why an import cannot be.

use std::path::{Path, PathBuf};

/// What to do is in the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no such server.
    #[error(
        "{} is missing: name the folder that holds the old server's server-files and user-files",
        .0.display()
    )]
    Missing(PathBuf),
    /// Before users, or before login methods.
    #[error(
        "{} is of an older release, and has {missing} not yet: start the newest release of the \
         old server on it once, which brings it up to date, and stop it",
        path.display()
    )]
    TooOld {
        /// The account file.
        path: PathBuf,
        /// A table or column.
        missing: &'static str,
    },
    /// Nobody ever set one, or it logs in by `OpenID` alone.
    #[error(
        "the old server has no password; one that logs in by OpenID alone cannot be taken over: \
         give it a password first"
    )]
    NoPassword,
    /// Another password than the old server's.
    #[error("this is not the old server's password")]
    WrongPassword,
    /// A file of the old server's does not open, or holds something else than it should.
    #[error("{}: {source}", path.display())]
    Old {
        /// Which file.
        path: PathBuf,
        /// What SQLite said.
        source: engine::Error,
    },
    /// A file of the old server's cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The data directory's accounts refused.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// A vault refused.
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
