//! The errors of a vault.

use std::path::PathBuf;

use crdt::{Timestamp, UnsealError};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The maximum number of conflicting timestamps in an error.
pub const TIMESTAMPS_NAMED_MAX: usize = 100;

/// The cause of an error, for the log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Timestamps are stored already with other contents. No part of the request is stored.
    #[error(
        "timestamps already stored with different content: {} (the first is {})",
        .timestamps.len(),
        .timestamps[0]
    )]
    TimestampConflict {
        /// The timestamps: at least one, at most [`TIMESTAMPS_NAMED_MAX`].
        timestamps: Vec<Timestamp>,
    },
    /// Messages have arrived after the cursor that the batch names. No part of the request is
    /// stored.
    #[error("the device has not pulled all messages yet")]
    StaleCursor,
    /// The new messages exceed the account's quota. No part of the request is stored.
    #[error("the account's limit for {what} is {limit}; this request would bring it to {wanted}")]
    QuotaExceeded {
        /// The name of the limit: `messages` or `bytes`.
        what: &'static str,
        limit: u64,
        wanted: u64,
    },
    /// The gateway declined the request. No part of it is stored.
    #[error("declined: {0}")]
    Declined(BoxError),
    /// A gateway's state names a blob of which chunks are missing. No part of the request is
    /// stored.
    #[error("another upload replaced this one")]
    BlobIncomplete,
    /// The database server is overloaded, or another transaction conflicts; the caller should try
    /// again.
    #[error("PostgreSQL is busy: {}", chain(&**.0))]
    Busy(BoxError),
    /// The database server does not respond, or closed the connection; the caller should try again.
    /// The request may have been carried out.
    #[error("PostgreSQL is unavailable: {}", chain(&**.0))]
    Unavailable(BoxError),
    /// A sealed value is not what was stored: it was changed without the key. `verify` finds all
    /// such contents of messages, `rebuild` drops them.
    #[error("cannot decrypt {what}: {source}")]
    Unreadable { what: String, source: UnsealError },
    /// Another process has locked the data directory.
    #[error("{} is in use by {holder}", path.display())]
    DataInUse {
        path: PathBuf,
        /// The command that holds it, and its process.
        holder: String,
    },
    /// A copy of a vault differs from it.
    #[error("the copy differs: {what}")]
    CopyDiffers { what: String },
    /// The address of the database server is invalid, or has unsupported options.
    #[error("cannot use the PostgreSQL address: {0}")]
    PostgresUrl(String),
    /// The tables in PostgreSQL are not usable by this version.
    #[error("cannot use the PostgreSQL schema: {0}")]
    PostgresSchema(String),
    /// PostgreSQL returned an error.
    #[error("PostgreSQL: {}", chain(.0))]
    Postgres(tokio_postgres::Error),
    /// The storage engine returned an error.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The data directory could not be created, or its accounts could not be opened.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// The operating system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error.into())
    }
}

/// Formats an error with its causes; the first alone says only where it happened.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
