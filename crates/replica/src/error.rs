//! What can go wrong on a device, each with a code that programs may rely on.

use prost::Message;
use protocol::{ErrorCode, ErrorResponse};
use rusqlite::ErrorCode as SqliteCode;

/// `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Content Too Large (RFC 9110, §15.5.14).
const STATUS_TOO_LARGE: u16 = 413;

/// Why a replica refuses, or could not do, something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("file not found: {path}")]
    FileNotFound {
        /// Where it was looked for.
        path: String,
    },
    /// No table of this file is tracked.
    #[error("{path} is not tracked")]
    NotTracked {
        /// The file.
        path: String,
    },
    /// The file was written by a later version of Warren.
    #[error("file format {found} is too new (newest supported: {known})")]
    FormatTooNew {
        /// In the file.
        found: i64,
        /// In this program.
        known: i64,
    },
    /// The file was written by an earlier version of Warren, in a format that is no longer read.
    #[error("file format {found} is no longer supported (oldest supported: {oldest})")]
    FormatTooOld {
        /// In the file.
        found: i64,
        /// The oldest that this program reads.
        oldest: i64,
    },
    /// No table of this name syncs, here or on another device.
    #[error("no synced table is named {table}")]
    TableNotFound {
        /// What was asked for.
        table: String,
    },
    /// The table cannot be tracked, or not as it is.
    #[error("table {table}: {reason}")]
    Untrackable {
        /// The table.
        table: String,
        /// What stands in the way.
        reason: String,
    },
    /// A tracked table lost a column, its key or itself.
    #[error("table {table}: {what}; nothing was sent or applied")]
    SchemaChanged {
        /// The table, as it was tracked.
        table: String,
        /// What is different.
        what: String,
    },
    /// Taking everything away would lose changes that no server has.
    #[error("{}", counted(*count, "change has not been sent", "changes have not been sent"))]
    UnsentChanges {
        /// How many messages.
        count: u64,
    },
    /// The file knows no server, or no account on it.
    #[error("no server is configured for this file")]
    ServerNotConfigured,
    /// The server refused.
    #[error("the server rejected the request: {message}")]
    RejectedByServer {
        /// Why.
        code: ErrorCode,
        /// For people.
        message: String,
    },
    /// No answer, or none that makes sense.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The server's certificate is not taken.
    #[error("the server's certificate is not trusted: {reason}")]
    Untrusted {
        /// What is wrong with it.
        reason: String,
    },
    /// What was given as certificates of authorities is none.
    #[error("not a PEM certificate: {reason}")]
    InvalidCertificate {
        /// What is wrong with it.
        reason: String,
    },
    /// An answer that is not Warren's: something else answered in the server's place.
    #[error("unexpected response (HTTP {status}), probably from {}", likely_intermediary(*status))]
    UnexpectedResponse {
        /// Of the answer.
        status: u16,
    },
    /// A proxy refused, by its limit on bodies, a request that cannot be made smaller.
    #[error("a proxy in front of the server rejected a change as too large (HTTP 413): {row}")]
    ProxyBodyLimit {
        /// What the change is of.
        row: String,
    },
    /// A message in the file's own log cannot be read.
    #[error("message {timestamp} in this file is corrupt: {reason}")]
    CorruptMessage {
        /// Which.
        timestamp: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No lost edit has this id.
    #[error("no conflict has the id {id}")]
    ConflictNotFound {
        /// What was asked for.
        id: String,
    },
    /// More than one lost edit has an id that begins so.
    #[error("the id {id} is ambiguous: more than one conflict matches")]
    AmbiguousConflict {
        /// What was asked for.
        id: String,
    },
    /// A constraint refuses a lost edit.
    #[error("the table rejected the change: {reason}")]
    ConstraintViolated {
        /// SQLite's words.
        reason: String,
    },
    /// A hidden row cannot be deleted: its references would dangle.
    #[error(
        "{} the row of {table} with key {key}",
        counted(*count, "row refers to", "rows refer to")
    )]
    Referenced {
        /// Its table.
        table: String,
        /// Its key, as SQL literals.
        key: String,
        /// References.
        count: u64,
        /// What [`crate::Replica::merge_hidden_row`] takes, if a visible row has its place.
        same: Option<String>,
    },
    /// What was to be erased is what the table shows.
    #[error("the row of {table} with key {key} still shows this value")]
    StillShown {
        /// The row's table.
        table: String,
        /// Its key as SQL literals.
        key: String,
    },
    /// The recovery phrase is missing, wrong or too late.
    #[error(transparent)]
    RecoveryPhrase(#[from] RecoveryPhraseError),
    /// The file is encrypted with another key, or not at all.
    #[error("wrong key, or the file is not encrypted")]
    WrongKey,
    /// No key was given, and the file is encrypted, or no database.
    #[error("not a SQLite database, or it is encrypted")]
    NotADatabase,
    /// A trigger of the user's ended the sync's transaction: nothing that was received is shown.
    #[error(
        "a trigger rolled back the sync (RAISE(ROLLBACK)), so no received changes were applied: \
         {reason}"
    )]
    RolledBack {
        /// The trigger's words.
        reason: String,
    },
    /// SQLite refused. Its words are all there is to say: they are no source that a chain of causes
    /// would repeat.
    #[error("{}", words_of(.0))]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Error {
    /// That of an answer whose status is no success: the server's refusal, or somebody else's.
    pub fn from_response(status: u16, body: &[u8]) -> Self {
        let refusal = ErrorResponse::decode(body).unwrap_or_default();
        match refusal.code() {
            Some(code) => Self::RejectedByServer { code, message: refusal.message().to_owned() },
            None => Self::UnexpectedResponse { status },
        }
    }

    /// [`Self::UnexpectedResponse`] if a success is a page for people: Warren's API answers none.
    pub fn check_media_type(status: u16, media_type: Option<&str>) -> Result<()> {
        let is_page = media_type.is_some_and(|media_type| media_type.starts_with("text/html"));
        if is_page { Err(Self::UnexpectedResponse { status }) } else { Ok(()) }
    }

    /// Whether a smaller request may pass: the server says so, or whoever stands before it.
    pub(crate) fn is_too_large(&self) -> bool {
        match self {
            Self::RejectedByServer { code, .. } => *code == ErrorCode::TooLarge,
            Self::UnexpectedResponse { status } => *status == STATUS_TOO_LARGE,
            _ => false,
        }
    }

    /// The code for programs; those of the server pass through.
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
            Self::RejectedByServer { code, .. } => *code,
            Self::Unreachable(_) => ErrorCode::Unreachable,
            Self::Untrusted { .. } => ErrorCode::Untrusted,
            Self::InvalidCertificate { .. } => ErrorCode::InvalidCertificate,
            Self::UnexpectedResponse { .. } => ErrorCode::UnexpectedResponse,
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

/// The code of what SQLite refuses, in every program and in a browser.
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

/// A count with its words, for one and for more.
pub(crate) fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// Who answers so, as a rule.
fn likely_intermediary(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 | 451 | 511 => "a proxy or network that blocks the request",
        502..=504 => "a proxy that cannot reach the server",
        _ => "a proxy or another program at this address",
    }
}

/// What is wrong with a recovery phrase, or with giving one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryPhraseError {
    /// Not 24 words of the list, or mistyped: the last word is a checksum.
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
    /// The server says that the account is in plain, and this file has a phrase.
    #[error(
        "this file is end-to-end encrypted, but the server reports that the account is not: the \
         recovery phrase belongs to another account, the server was restored from an old backup, \
         or the server cannot be trusted; nothing was sent"
    )]
    AccountNotEncrypted,
    /// A phrase was typed in, and nothing has opened with it yet.
    #[error("cannot verify the recovery phrase because the account is empty; nothing was sent")]
    Unverified,
    /// Nobody has said yet whether the account is encrypted end to end.
    #[error("the account is empty, and it is not decided yet whether it is end-to-end encrypted")]
    EncryptionUndecided,
    /// Changes are on the server that were sealed with the phrase that the file has.
    #[error("this file already uses a different recovery phrase")]
    InUse,
    /// The file is not encrypted end to end.
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
        // A chain of causes would say it again.
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
