//! What can go wrong in a vault.

use std::path::PathBuf;

use crdt::Timestamp;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Conflicting timestamps that an error names at most.
pub const TIMESTAMPS_NAMED_MAX: usize = 100;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Timestamps that came with other contents than before. Nothing of the request is stored.
    #[error("another content for {} known timestamps, the first of them {}", .timestamps.len(), .timestamps[0])]
    TimestampConflict {
        /// At least one, at most [`TIMESTAMPS_NAMED_MAX`].
        timestamps: Vec<Timestamp>,
    },
    /// The new messages do not fit into what the account may hold. Nothing of the request is stored.
    #[error("the account may hold {limit} {what}, and this would make it {wanted}")]
    QuotaExceeded {
        /// `messages`, or `bytes`.
        what: &'static str,
        limit: u64,
        wanted: u64,
    },
    /// The database refused.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error.into())
    }
}
