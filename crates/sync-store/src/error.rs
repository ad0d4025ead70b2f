//! What can go wrong in a vault.

use std::path::PathBuf;

use crdt::{Timestamp, UnsealError};

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Conflicting timestamps that an error names at most.
pub const TIMESTAMPS_NAMED_MAX: usize = 100;

/// What lies behind an error, for the log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Timestamps that came with other contents than before. Nothing of the request is stored.
    #[error(
        "timestamps already stored with different content: {} (the first is {})",
        .timestamps.len(),
        .timestamps[0]
    )]
    TimestampConflict {
        /// At least one, at most [`TIMESTAMPS_NAMED_MAX`].
        timestamps: Vec<Timestamp>,
    },
    /// Something has arrived after the cursor that the batch names. Nothing of the request is stored.
    #[error("the device has not pulled all messages yet")]
    StaleCursor,
    /// The new messages do not fit into what the account may hold. Nothing of the request is stored.
    #[error("the account's limit for {what} is {limit}; this request would bring it to {wanted}")]
    QuotaExceeded {
        /// `messages`, or `bytes`.
        what: &'static str,
        limit: u64,
        wanted: u64,
    },
    /// The gateway would not have it. Nothing of the request is stored.
    #[error("declined: {0}")]
    Declined(BoxError),
    /// Not all chunks of a blob are there that a gateway's state was to name. Nothing of the
    /// request is stored.
    #[error("another upload replaced this one")]
    BlobIncomplete,
    /// The database server has too much to do, or another transaction was in the way: try again.
    #[error("PostgreSQL is busy: {}", chain(&**.0))]
    Busy(BoxError),
    /// The database server does not answer, or ended the connection: try again. What was asked for
    /// may have been done.
    #[error("PostgreSQL is unavailable: {}", chain(&**.0))]
    Unavailable(BoxError),
    /// Something sealed that is not what was stored: somebody without the key changed it. `verify`
    /// finds all messages' contents that are so, `rebuild` drops them.
    #[error("cannot decrypt {what}: {source}")]
    Unreadable { what: String, source: UnsealError },
    /// Another process has the data directory.
    #[error("{} is in use by {holder}", path.display())]
    DataInUse {
        path: PathBuf,
        /// A command, and its process.
        holder: String,
    },
    /// A copy of a vault is not equal to it.
    #[error("the copy differs: {what}")]
    CopyDiffers { what: String },
    /// How to reach the database server cannot be understood, or not be followed.
    #[error("cannot use the PostgreSQL address: {0}")]
    PostgresUrl(String),
    /// The tables in PostgreSQL cannot be used by this version.
    #[error("cannot use the PostgreSQL schema: {0}")]
    PostgresSchema(String),
    /// PostgreSQL refused.
    #[error("PostgreSQL: {}", chain(.0))]
    Postgres(tokio_postgres::Error),
    /// The database refused.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The data directory cannot be made, or its accounts not be opened.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
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

/// An error with its causes; the first alone says only where it happened.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
