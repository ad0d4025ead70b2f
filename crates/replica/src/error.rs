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
    #[error("there is no file {path}")]
    FileNotFound {
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
    FormatTooNew {
        /// In the file.
        found: i64,
        /// In this program.
        known: i64,
    },
    /// The file was written by an earlier version of Warren, in a format that is no longer read.
    #[error(
        "this file has format {found}, which this version of Warren no longer reads; it reads \
         format {oldest}"
    )]
    FormatTooOld {
        /// In the file.
        found: i64,
        /// The oldest that this program reads.
        oldest: i64,
    },
    /// No table of this name syncs, here or on another device.
    #[error("no table that syncs is called {table}: `warren status FILE` lists those that do")]
    NoTable {
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
    UnsentChanges {
        /// How many messages.
        count: u64,
    },
    /// The file knows no server, or no account on it.
    #[error("this file has no server yet: give --server and --login once")]
    ServerNotConfigured,
    /// The server refused.
    #[error("the server refused ({code}): {message}")]
    RejectedByServer {
        /// Why.
        code: ErrorCode,
        /// For people.
        message: String,
    },
    /// No answer, or none that makes sense.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server's certificate is not taken.
    #[error("the server's certificate is not trusted: {reason}")]
    Untrusted {
        /// What is wrong with it.
        reason: String,
    },
    /// What was given as certificates of authorities is none.
    #[error("this is no certificate in PEM: {reason}")]
    InvalidCertificate {
        /// What is wrong with it.
        reason: String,
    },
    /// An answer that is not Warren's: something else answered in the server's place.
    #[error(
        "something between this device and the server answered in its place, with status \
         {status}: {}",
        likely_intermediary(*status)
    )]
    UnexpectedResponse {
        /// Of the answer.
        status: u16,
    },
    /// A proxy refused, by its limit on bodies, a request that cannot be made smaller.
    #[error(
        "a proxy in front of the server refused one change as too large, with status 413: {row}. \
         Give the proxy the server's own limit on bodies (nginx: client_max_body_size 16m)"
    )]
    ProxyBodyLimit {
        /// What the change is of.
        row: String,
    },
    /// A message in the file's own log cannot be read.
    #[error("message {timestamp} in the file cannot be read: {reason}")]
    CorruptMessage {
        /// Which.
        timestamp: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No lost edit has this id.
    #[error("there is no lost edit {id}: `warren conflicts FILE` lists them")]
    ConflictNotFound {
        /// What was asked for.
        id: String,
    },
    /// More than one lost edit has an id that begins so.
    #[error("more than one lost edit begins with {id}: give more digits")]
    AmbiguousConflict {
        /// What was asked for.
        id: String,
    },
    /// A constraint refuses a lost edit.
    #[error("the table does not take it: {reason}")]
    ConstraintViolated {
        /// SQLite's words.
        reason: String,
    },
    /// A hidden row cannot be deleted: its references would dangle.
    #[error(
        "{count} rows refer to the row of {table} with key {key}{}",
        same.as_ref().map_or(": delete them first, or give it a value that fits".to_owned(), |id| {
            format!(": `warren conflicts FILE --merge {id}` makes them refer to the one that is shown")
        })
    )]
    Referenced {
        /// Its table.
        table: String,
        /// Its key, as SQL literals.
        key: String,
        /// References.
        count: u64,
        /// What [`crate::Replica::join`] takes, if a visible row has its place.
        same: Option<String>,
    },
    /// What was to be erased is what the table shows.
    #[error(
        "the row of {table} with key {key} still shows it: change it, or delete the row, sync, and \
         then erase what it was"
    )]
    StillShown {
        /// The row's table.
        table: String,
        /// Its key as SQL literals.
        key: String,
    },
    /// The recovery phrase is missing, wrong or too late.
    #[error(transparent)]
    RecoveryPhrase(#[from] RecoveryPhraseError),
    /// The file is encrypted with another key, or is no database.
    #[error("this key does not open the file; without a key: it is encrypted, or no database")]
    WrongKey,
    /// A trigger of the user's ended the sync's transaction: nothing that was received is shown.
    #[error("a trigger rolled everything back (RAISE(ROLLBACK)), so nothing is shown: {reason}")]
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
    pub fn code(&self) -> &'static str {
        match self {
            Self::FileNotFound { .. } => "file_not_found",
            Self::NotTracked { .. } => "not_tracked",
            Self::NoTable { .. } => "no_table",
            Self::FormatTooNew { .. } => "format_too_new",
            Self::FormatTooOld { .. } => "format_too_old",
            Self::Untrackable { .. } => "untrackable",
            Self::SchemaChanged { .. } => "schema_changed",
            Self::UnsentChanges { .. } => "unsent_changes",
            Self::ServerNotConfigured => "server_not_configured",
            Self::RejectedByServer { code, .. } => code.as_str(),
            Self::Unreachable(_) => "unreachable",
            Self::Untrusted { .. } => "untrusted",
            Self::InvalidCertificate { .. } => "invalid_certificate",
            Self::UnexpectedResponse { .. } => "unexpected_response",
            Self::ProxyBodyLimit { .. } => "proxy_body_limit",
            Self::CorruptMessage { .. } => "corrupt_message",
            Self::ConflictNotFound { .. } => "conflict_not_found",
            Self::AmbiguousConflict { .. } => "ambiguous_id",
            Self::ConstraintViolated { .. } => "constraint_violated",
            Self::Referenced { .. } => "referenced",
            Self::StillShown { .. } => "still_shown",
            Self::RecoveryPhrase(error) => error.code(),
            Self::WrongKey => "wrong_key",
            Self::RolledBack { .. } => "rolled_back",
            Self::Sqlite(error) => sqlite_code(error),
        }
    }
}

/// What SQLite's refusals are called for programs, natively and in a browser.
fn sqlite_code(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(SqliteCode::ConstraintViolation) => "constraint_violated",
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => "busy",
        Some(SqliteCode::DatabaseCorrupt) => "damaged",
        Some(SqliteCode::DiskFull) => "storage_full",
        Some(SqliteCode::NotADatabase) => "wrong_key",
        Some(SqliteCode::PermissionDenied | SqliteCode::ReadOnly) => "read_only",
        Some(SqliteCode::SystemIoFailure) => "storage_failed",
        _ => "sqlite_error",
    }
}

fn words_of(error: &rusqlite::Error) -> String {
    match (sqlite_code(error), error) {
        ("busy", _) => "another program keeps it locked".to_owned(),
        (_, rusqlite::Error::SqliteFailure(_, Some(message))) => message.clone(),
        (_, other) => other.to_string(),
    }
}

/// Who answers so, as a rule.
fn likely_intermediary(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 | 451 | 511 => "a proxy or a network that does not let this pass",
        502..=504 => "a proxy that does not reach the server",
        _ => "a proxy, or another program at this address",
    }
}

/// What is wrong with a recovery phrase, or with giving one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryPhraseError {
    /// Not 24 words of the list, or mistyped: the last word is a checksum.
    #[error("this is no recovery phrase: {0}")]
    Invalid(String),
    /// The server's contents are encrypted, and this file has no phrase.
    #[error(
        "the other devices' changes are encrypted end to end: give their recovery phrase with \
         --recovery-phrase-file FILE (`warren recovery-phrase` shows it there). Nothing has been \
         sent or applied"
    )]
    Required,
    /// The server's contents were encrypted with another phrase.
    #[error(
        "the other devices have another recovery phrase: give theirs with \
         --recovery-phrase-file FILE (`warren recovery-phrase` shows it there). Nothing has been \
         sent or applied"
    )]
    Wrong,
    /// The server says that the account is in plain, and this file has a phrase.
    #[error(
        "the server says that this account is not encrypted end to end, and this file is: the phrase \
         is another account's, or the server is not to be trusted. Nothing has been sent. If the \
         server was restored from an old backup, `warren track FILE --all --e2ee` encrypts it again"
    )]
    AccountNotEncrypted,
    /// A phrase was typed in, and nothing has opened with it yet.
    #[error(
        "nothing on the server opens with this recovery phrase, for there is nothing yet: sync the \
         device that has made it first, or give --new-account if it was made for this account. \
         Nothing has been sent"
    )]
    Unverified,
    /// Nobody has said yet whether the account is encrypted end to end.
    #[error("this account has no data yet: say whether it is encrypted end to end, first")]
    EncryptionUndecided,
    /// Changes are on the server that were sealed with the phrase that the file has.
    #[error("this file has synced with another recovery phrase already")]
    InUse,
    /// The file is not encrypted end to end.
    #[error("this file has no recovery phrase: it does not encrypt end to end")]
    NotSet,
}

impl RecoveryPhraseError {
    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_recovery_phrase",
            Self::Required => "recovery_phrase_required",
            Self::Wrong => "wrong_recovery_phrase",
            Self::AccountNotEncrypted => "account_not_encrypted",
            Self::Unverified => "recovery_phrase_unverified",
            Self::EncryptionUndecided => "encryption_undecided",
            Self::InUse => "recovery_phrase_in_use",
            Self::NotSet => "recovery_phrase_not_set",
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn check(code: i32, words: &str, expected: (&str, &str)) {
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(words.into()));
        let error = Error::from(failure);
        assert_eq!((error.code(), &*error.to_string()), expected);
        // A chain of causes would say it again.
        assert!(std::error::Error::source(&error).is_none());
    }

    #[test]
    fn what_sqlite_refuses_has_a_code_and_is_said_once() {
        let full = "database or disk is full";
        check(ffi::SQLITE_FULL, full, ("storage_full", full));
        let read_only = "attempt to write a readonly database";
        check(ffi::SQLITE_READONLY, read_only, ("read_only", read_only));
        let locked = "another program keeps it locked";
        check(ffi::SQLITE_BUSY, "database is locked", ("busy", locked));
        check(ffi::SQLITE_IOERR_FSYNC, "disk I/O error", ("storage_failed", "disk I/O error"));
        check(ffi::SQLITE_ERROR, "no such column: a", ("sqlite_error", "no such column: a"));
    }
}
