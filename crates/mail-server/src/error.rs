//! The errors of this crate.

use std::net::SocketAddr;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reasons why the server cannot start, or cannot store mail. Messages contain no addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    #[error(transparent)]
    Store(#[from] mail_store::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl Error {
    /// Whether the disk of the data directory is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        let engine = match self {
            Self::Engine(error) => error,
            Self::Store(mail_store::Error::Engine(error)) => error,
            Self::Accounts(accounts::Error::Engine(error)) => error,
            _ => return false,
        };
        matches!(engine, engine::Error::DiskFull { .. })
    }
}
