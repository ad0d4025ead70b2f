//! Why an import cannot be.

use std::path::{Path, PathBuf};

/// What to do is in the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no such server.
    #[error(
        "{} is missing: pass the directory with the old server's server-files and user-files",
        .0.display()
    )]
    Missing(PathBuf),
    /// Before users, or before login methods.
    #[error(
        "{} is from an older release without {missing}: start the newest release of the old \
         server on it once to upgrade it, then stop the server",
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
        "the old server has no password; a server with only OpenID login cannot be imported: set \
         a password first"
    )]
    NoPassword,
    /// Another password than the old server's.
    #[error("wrong password for the old server")]
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
