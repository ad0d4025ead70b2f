//! Lists the errors of a replica, each with a code that programs may rely on.

use prost::Message;
use protocol::{ErrorCode, ErrorResponse};
use rusqlite::ErrorCode as SqliteCode;

/// The `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The HTTP status Content Too Large (RFC 9110, §15.5.14).
const STATUS_TOO_LARGE: u16 = 413;

/// The reason why a replica rejects an operation or cannot complete it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not exist.
    #[error("file not found: {path}")]
    FileNotFound {
        /// The path that was given.
        path: String,
    },
    /// No table of this file is tracked.
    #[error("{path} is not tracked")]
    NotTracked {
        /// The path of the file.
        path: String,
    },
    /// A later version of Warren wrote the file.
    #[error("file format {found} is too new (newest supported: {known})")]
    FormatTooNew {
        /// The format of the file.
        found: i64,
        /// The newest format that this program reads.
        known: i64,
    },
    /// An earlier version of Warren wrote the file, in a format that is no longer supported.
    #[error("file format {found} is no longer supported (oldest supported: {oldest})")]
    FormatTooOld {
        /// The format of the file.
        found: i64,
        /// The oldest format that this program reads.
        oldest: i64,
    },
    /// No table of this name syncs, here or on another device.
    #[error("no synced table is named {table}")]
    TableNotFound {
        /// The name that was given.
        table: String,
    },
    /// The table cannot be tracked, or not in its present form.
    #[error("table {table}: {reason}")]
    Untrackable {
        /// The name of the table.
        table: String,
        /// The reason why it cannot be tracked.
        reason: String,
    },
    /// A tracked table was removed, lost a column, or has another key.
    #[error("table {table}: {what}; nothing was sent or applied")]
    SchemaChanged {
        /// The name under which the table was tracked.
        table: String,
        /// The difference to the tracked table.
        what: String,
    },
    /// Removing Warren from the file would lose changes that no server has.
    #[error("{}", counted(*count, "change has not been sent", "changes have not been sent"))]
    UnsentChanges {
        /// The number of unsent messages.
        count: u64,
    },
    /// The file has no server, or no account on it.
    #[error("no server is configured for this file")]
    ServerNotConfigured,
    /// The file belongs to a different account than the one that was given.
    #[error("{path} belongs to the account {login} on {server}")]
    AccountDiffers {
        /// The path of the file, or the name of the database.
        path: String,
        /// The server of the file's account.
        server: String,
        /// The login of the file's account.
        login: String,
    },
    /// The program at a new address of the server does not know this file.
    #[error("{server} answers, but does not list this file as a device of its account")]
    DeviceNotListed {
        /// The address that was given.
        server: String,
    },
    /// The server rejected the request.
    #[error("the server rejected the request: {message}")]
    RejectedByServer {
        /// The error code of the server.
        code: ErrorCode,
        /// The server's message for people.
        message: String,
    },
    /// The server did not answer, or its answer makes no sense.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The server's certificate is not trusted.
    #[error("the server's certificate is not trusted: {reason}")]
    Untrusted {
        /// The reason why it is not trusted.
        reason: String,
    },
    /// The given certificates of authorities are not PEM certificates.
    #[error("not a PEM certificate: {reason}")]
    InvalidCertificate {
        /// The reason why they cannot be read.
        reason: String,
    },
    /// The response is not Warren's: another program answered in the server's place.
    #[error("unexpected response (HTTP {status}), probably from {}", likely_intermediary(*status))]
    UnexpectedResponse {
        /// The HTTP status of the response.
        status: u16,
    },
    /// A proxy's limit on bodies rejected a request that cannot be made smaller.
    #[error("a proxy in front of the server rejected a change as too large (HTTP 413): {row}")]
    ProxyBodyLimit {
        /// The row or chunk that the request contains.
        row: String,
    },
    /// A message in the file's own log cannot be read.
    #[error("message {timestamp} in this file is corrupt: {reason}")]
    CorruptMessage {
        /// The timestamp of the message.
        timestamp: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// No lost edit has this id.
    #[error("no conflict has the id {id}")]
    ConflictNotFound {
        /// The id that was given.
        id: String,
    },
    /// The ids of several lost edits begin with this one.
    #[error("the id {id} is ambiguous: more than one conflict matches")]
    AmbiguousConflict {
        /// The id that was given.
        id: String,
    },
    /// A constraint rejects a lost edit.
    #[error("the table rejected the change: {reason}")]
    ConstraintViolated {
        /// The message of SQLite.
        reason: String,
    },
    /// A hidden row cannot be deleted, because references to it would dangle.
    #[error(
        "{} the row of {table} with key {key}",
        counted(*count, "row refers to", "rows refer to")
    )]
    Referenced {
        /// The table of the row.
        table: String,
        /// The key of the row, as SQL literals.
        key: String,
        /// The number of references.
        count: u64,
        /// The id for [`crate::Replica::merge_hidden_row`], if a visible row has its unique value.
        same: Option<String>,
    },
    /// The value that should be erased is visible in the table.
    #[error("the row of {table} with key {key} still shows this value")]
    StillShown {
        /// The table of the row.
        table: String,
        /// The key of the row, as SQL literals.
        key: String,
    },
    /// The recovery phrase is missing, wrong or too late.
    #[error(transparent)]
    RecoveryPhrase(#[from] RecoveryPhraseError),
    /// The file is encrypted with another key, or not at all.
    #[error("wrong key, or the file is not encrypted")]
    WrongKey,
    /// The file is encrypted and no key was given, or it is not a database.
    #[error("not a SQLite database, or it is encrypted")]
    NotADatabase,
    /// A user's trigger ended the sync's transaction, so none of the received changes are visible.
    #[error(
        "a trigger rolled back the sync (RAISE(ROLLBACK)), so no received changes were applied: \
         {reason}"
    )]
    RolledBack {
        /// The message of the trigger.
        reason: String,
    },
    /// SQLite returned an error. Its message is the whole text: it is not a `source`, which a chain
    /// of causes would repeat.
    #[error("{}", words_of(.0))]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Error {
    /// Creates the error of a response whose status is not a success: a refusal of the server, or
    /// an answer of another program.
    pub fn from_response(status: u16, body: &[u8]) -> Self {
        let refusal = ErrorResponse::decode(body).unwrap_or_default();
        match refusal.code() {
            Some(code) => Self::RejectedByServer { code, message: refusal.message().to_owned() },
            None => Self::UnexpectedResponse { status },
        }
    }

    /// Returns [`Self::UnexpectedResponse`] if a successful response is an HTML page, which
    /// Warren's API never sends.
    pub fn check_media_type(status: u16, media_type: Option<&str>) -> Result<()> {
        let is_page = media_type.is_some_and(|media_type| media_type.starts_with("text/html"));
        if is_page { Err(Self::UnexpectedResponse { status }) } else { Ok(()) }
    }

    /// Returns whether a smaller request may pass the server, or the proxy in front of it.
    pub(crate) fn is_too_large(&self) -> bool {
        match self {
            Self::RejectedByServer { code, .. } => *code == ErrorCode::TooLarge,
            Self::UnexpectedResponse { status } => *status == STATUS_TOO_LARGE,
            _ => false,
        }
    }

    /// Returns the code for programs; the server's codes are passed through.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::FileNotFound { .. } => ErrorCode::FileNotFound,
            Self::NotTracked { .. } => ErrorCode::NotTracked,
            Self::TableNotFound { .. } => ErrorCode::TableNotFound,
            Self::FormatTooNew { .. } => ErrorCode::FormatTooNew,
            Self::FormatTooOld { .. } => ErrorCode::FormatTooOld,
            Self::Untrackable { .. } => ErrorCode::Untrackable,
            Self::SchemaChanged { .. } => ErrorCode::SchemaChanged,
            Self::UnsentChanges { .. } => ErrorCode::UnsentChanges,
            Self::ServerNotConfigured => ErrorCode::ServerNotConfigured,
            Self::AccountDiffers { .. } => ErrorCode::AccountDiffers,
            Self::RejectedByServer { code, .. } => *code,
            Self::Unreachable(_) => ErrorCode::Unreachable,
            Self::Untrusted { .. } => ErrorCode::Untrusted,
            Self::InvalidCertificate { .. } => ErrorCode::InvalidCertificate,
            Self::DeviceNotListed { .. } | Self::UnexpectedResponse { .. } => {
                ErrorCode::UnexpectedResponse
            }
            Self::ProxyBodyLimit { .. } => ErrorCode::ProxyBodyLimit,
            Self::CorruptMessage { .. } => ErrorCode::CorruptMessage,
            Self::ConflictNotFound { .. } => ErrorCode::ConflictNotFound,
            Self::AmbiguousConflict { .. } => ErrorCode::AmbiguousId,
            Self::ConstraintViolated { .. } => ErrorCode::ConstraintViolated,
            Self::Referenced { .. } => ErrorCode::Referenced,
            Self::StillShown { .. } => ErrorCode::StillShown,
            Self::RecoveryPhrase(error) => error.code(),
            Self::WrongKey => ErrorCode::WrongKey,
            Self::NotADatabase => ErrorCode::NotADatabase,
            Self::RolledBack { .. } => ErrorCode::RolledBack,
            Self::Sqlite(error) => sqlite_code(error),
        }
    }
}

/// Returns the code of an SQLite error, for every program and for a browser.
pub fn sqlite_code(error: &rusqlite::Error) -> ErrorCode {
    match error.sqlite_error_code() {
        Some(SqliteCode::ConstraintViolation) => ErrorCode::ConstraintViolated,
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => ErrorCode::Busy,
        Some(SqliteCode::DatabaseCorrupt) => ErrorCode::CorruptDatabase,
        Some(SqliteCode::DiskFull) => ErrorCode::DiskFull,
        Some(SqliteCode::NotADatabase) => ErrorCode::NotADatabase,
        Some(SqliteCode::PermissionDenied | SqliteCode::ReadOnly) => ErrorCode::ReadOnly,
        Some(SqliteCode::SystemIoFailure) => ErrorCode::StorageFailed,
        _ => ErrorCode::SqliteError,
    }
}

fn words_of(error: &rusqlite::Error) -> String {
    match (sqlite_code(error), error) {
        (ErrorCode::Busy, _) => "another program has locked the file".to_owned(),
        (_, rusqlite::Error::SqliteFailure(_, Some(message))) => message.clone(),
        (_, other) => other.to_string(),
    }
}

/// Formats a count with its noun, in singular or plural.
pub(crate) fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// Guesses which program in front of the server sends this status.
fn likely_intermediary(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 | 451 | 511 => "a proxy or network that blocks the request",
        502..=504 => "a proxy that cannot reach the server",
        _ => "a proxy or another program at this address",
    }
}

/// The reason why a recovery phrase is missing or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryPhraseError {
    /// The phrase does not have 24 words of the list, or is mistyped: the last word is a checksum.
    #[error("invalid recovery phrase: {0}")]
    Invalid(String),
    /// The server's contents are encrypted, and this file has no phrase.
    #[error(
        "this account is end-to-end encrypted and this file has no recovery phrase; nothing was \
         sent or applied"
    )]
    Required,
    /// The server's contents were encrypted with another phrase.
    #[error("the other devices use a different recovery phrase; nothing was sent or applied")]
    Wrong,
    /// The server reports an unencrypted account, and this file has a phrase.
    #[error(
        "this file is end-to-end encrypted, but the server reports that the account is not: the \
         recovery phrase belongs to another account, the server was restored from an old backup, \
         or the server cannot be trusted; nothing was sent"
    )]
    AccountNotEncrypted,
    /// A phrase was entered, and no message has been decrypted with it yet.
    #[error("cannot verify the recovery phrase because the account is empty; nothing was sent")]
    Unverified,
    /// It is not decided yet whether the account is end-to-end encrypted.
    #[error("the account is empty, and it is not decided yet whether it is end-to-end encrypted")]
    EncryptionUndecided,
    /// The server has changes that were sealed with the phrase that the file already has.
    #[error("this file already uses a different recovery phrase")]
    InUse,
    /// The file is not end-to-end encrypted.
    #[error("this file has no recovery phrase and is not end-to-end encrypted")]
    NotSet,
}

impl RecoveryPhraseError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(_) => ErrorCode::InvalidRecoveryPhrase,
            Self::Required => ErrorCode::RecoveryPhraseRequired,
            Self::Wrong => ErrorCode::WrongRecoveryPhrase,
            Self::AccountNotEncrypted => ErrorCode::AccountNotEncrypted,
            Self::Unverified => ErrorCode::RecoveryPhraseUnverified,
            Self::EncryptionUndecided => ErrorCode::EncryptionUndecided,
            Self::InUse => ErrorCode::RecoveryPhraseInUse,
            Self::NotSet => ErrorCode::RecoveryPhraseNotSet,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn check(code: i32, words: &str, expected: (ErrorCode, &str)) {
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(words.into()));
        let error = Error::from(failure);
        assert_eq!((error.code(), &*error.to_string()), expected);
        // A chain of causes would repeat the message.
        assert!(std::error::Error::source(&error).is_none());
    }

    #[test]
    fn what_sqlite_refuses_has_a_code_and_is_said_once() {
        let full = "database or disk is full";
        check(ffi::SQLITE_FULL, full, (ErrorCode::DiskFull, full));
        let read_only = "attempt to write a readonly database";
        check(ffi::SQLITE_READONLY, read_only, (ErrorCode::ReadOnly, read_only));
        let locked = "another program has locked the file";
        check(ffi::SQLITE_BUSY, "database is locked", (ErrorCode::Busy, locked));
        check(
            ffi::SQLITE_IOERR_FSYNC,
            "disk I/O error",
            (ErrorCode::StorageFailed, "disk I/O error"),
        );
        check(
            ffi::SQLITE_ERROR,
            "no such column: a",
            (ErrorCode::SqliteError, "no such column: a"),
        );
    }
}
