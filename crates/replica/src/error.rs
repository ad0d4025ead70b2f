//! What can go wrong on a device, each with a code that programs may rely on.

use protocol::ErrorCode;

/// `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a replica refuses, or could not do, something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("there is no file {path}")]
    NoFile {
        /// Where it was looked for.
        path: String,
    },
    /// No table of this file is tracked.
    #[error("{path} is not tracked: `warren track {path} --all` begins")]
    NotTracked {
        /// The file.
        path: String,
    },
    /// The file was written by a later version of Warren.
    #[error("this file has format {found}; this program knows up to {known}: update it")]
    TooNew {
        /// In the file.
        found: i64,
        /// In this program.
        known: i64,
    },
    /// The table cannot be tracked, or not as it is.
    #[error("table {table}: {why}")]
    Untrackable {
        /// The table.
        table: String,
        /// What stands in the way.
        why: String,
    },
    /// A tracked table lost a column, its key or itself.
    #[error(
        "table {table}: {what}. If that was meant, `warren untrack FILE {table}`, then \
         `warren track FILE {table}`; nothing has been sent or applied"
    )]
    SchemaChanged {
        /// The table, as it was tracked.
        table: String,
        /// What is different.
        what: String,
    },
    /// Taking everything away would lose changes that no server has.
    #[error("{count} changes have not been sent: sync first, or use --force to give them up")]
    Unsent {
        /// How many messages.
        count: u64,
    },
    /// The file knows no server, or no account on it.
    #[error("this file has no server yet: give --server and --login once")]
    NoServer,
    /// The server refused.
    #[error("the server refused ({code}): {message}")]
    Refused {
        /// Why.
        code: ErrorCode,
        /// For people.
        message: String,
    },
    /// No answer, or none that makes sense.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server's timestamps are too far ahead, or this device's clock ran away.
    #[error(transparent)]
    Clock(#[from] crdt::ClockError),
    /// A message in the file's own log cannot be read.
    #[error("message {timestamp} in the file cannot be read: {why}")]
    Damaged {
        /// Which.
        timestamp: String,
        /// What is wrong with it.
        why: String,
    },
    /// SQLite refused.
    #[error("sqlite: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl Error {
    /// The code for programs; those of the server pass through.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoFile { .. } => "no_file",
            Self::NotTracked { .. } => "not_tracked",
            Self::TooNew { .. } => "too_new",
            Self::Untrackable { .. } => "untrackable",
            Self::SchemaChanged { .. } => "schema_changed",
            Self::Unsent { .. } => "unsent",
            Self::NoServer => "no_server",
            Self::Refused { code, .. } => code.as_str(),
            Self::Unreachable(_) => "unreachable",
            Self::Clock(_) => "clock_drift",
            Self::Damaged { .. } => "damaged",
            Self::Sqlite(_) => "sqlite",
        }
    }
}
