//! The closed list of error codes: what each means, over HTTP, on the command line and in a
//! browser.
//!
//! # Invariants
//! - A code is for ever: its text, its status and whether to retry do not change.
//! - `docs/reference/formats/4-errors.md` lists the same codes; a test compares them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($variant:ident: $text:literal, $status:expr, $retry:literal, $meaning:literal;)*) => {
        /// Why something was refused or failed. Alphabetical; stable for ever.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $(#[doc = $meaning] $variant,)* }

        impl ErrorCode {
            /// Every code, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as programs read it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The HTTP status that it comes with; `None` if no server answers with it.
            pub const fn http_status(self) -> Option<u16> {
                match self { $(Self::$variant => $status),* }
            }

            /// Whether the same request may succeed later without anybody changing anything.
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retry),* }
            }

            /// What it means, for people.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    AccountExists: "account_exists", Some(409), false, "An account with this login exists.";
    AccountNotEncrypted: "account_not_encrypted", None, false, "The server says that the account is not encrypted end to end, and the file is.";
    AddressInUse: "address_in_use", None, false, "Another program listens on this address.";
    AdminDisabled: "admin_disabled", Some(403), false, "The server was started without an operator's token.";
    AmbiguousId: "ambiguous_id", None, false, "More than one id begins with these characters.";
    AmbiguousName: "ambiguous_name", None, false, "More than one budget has this name.";
    AppTooNew: "app_too_new", None, false, "A budget has changes of a newer app than the one that uploaded its file.";
    BudgetFileMissing: "budget_file_missing", None, false, "The budget has no file yet; an app has to upload it.";
    BudgetNotDeleted: "budget_not_deleted", None, false, "The budget is not deleted, so it cannot be restored.";
    BudgetNotFound: "budget_not_found", None, false, "No budget has this id or name.";
    Busy: "busy", Some(503), true, "Something else is in the way: a queue is full, or another program has the file open or locked.";
    Cancelled: "cancelled", None, false, "The caller cancelled it.";
    ClockDrift: "clock_drift", Some(422), false, "A message is stamped more than five minutes ahead of the server's clock, and of what the vault holds.";
    Closed: "closed", None, false, "The database is closed.";
    ConfirmationRequired: "confirmation_required", None, false, "The command destroys something, and nobody has confirmed it.";
    ConflictNotFound: "conflict_not_found", None, false, "No conflict has this id.";
    ConstraintViolated: "constraint_violated", None, false, "A constraint of the table does not allow the change.";
    CorruptBackup: "corrupt_backup", None, false, "The backup is damaged, or not complete.";
    CorruptBudget: "corrupt_budget", None, false, "A budget's file, record or message is not what apps write.";
    CorruptDatabase: "corrupt_database", None, false, "The database file, or its record of what was synced, is damaged.";
    CorruptMessage: "corrupt_message", None, false, "A message in the file cannot be read.";
    DataDirectoryInUse: "data_directory_in_use", None, true, "Another process has the data directory open.";
    Deleted: "deleted", None, false, "The database was deleted, here or in another tab.";
    DiskFull: "disk_full", None, true, "The disk is full, or the browser grants no more space; nothing was stored.";
    EncryptionMismatch: "encryption_mismatch", Some(409), false, "The account's messages are encrypted end to end with another key, or not at all; or the request's are not.";
    EncryptionUndecided: "encryption_undecided", None, false, "The account is new, and nobody has said whether it is encrypted end to end.";
    EngineUnavailable: "engine_unavailable", None, false, "The browser could not load the worker or the WebAssembly module.";
    FileExists: "file_exists", None, false, "A file or directory is there already, and is not replaced.";
    FileNotFound: "file_not_found", None, false, "There is no such file or directory.";
    FixFailed: "fix_failed", None, false, "A fix did not help, and the file is as it was.";
    FormatTooNew: "format_too_new", None, false, "A newer version of Warren wrote this.";
    FormatTooOld: "format_too_old", None, false, "An older version of Warren wrote this, in a format that is no longer read.";
    HostNotAllowed: "host_not_allowed", Some(421), false, "The server does not answer requests for this host name.";
    Internal: "internal", Some(500), true, "A fault of Warren, or an error without a code of its own; a server's log says more.";
    InvalidArgument: "invalid_argument", None, false, "An argument is missing, or not one of those that are allowed.";
    InvalidCertificate: "invalid_certificate", None, false, "The certificate or its key cannot be read.";
    InvalidDeviceName: "invalid_device_name", Some(400), false, "A device's name has at most 200 characters.";
    InvalidFile: "invalid_file", None, false, "A file that was given to a command does not have the format that the command reads.";
    InvalidKey: "invalid_key", None, false, "The key file, passphrase or key has the wrong length or form.";
    InvalidLogin: "invalid_login", Some(400), false, "A login is 1 to 64 letters, digits and . _ @ + -, beginning with a letter or digit.";
    InvalidPassword: "invalid_password", Some(400), false, "A password has 8 to 1,024 bytes.";
    InvalidQuery: "invalid_query", None, false, "SQLite does not understand the query.";
    InvalidRecoveryPhrase: "invalid_recovery_phrase", None, false, "These are not the 24 words of a recovery phrase.";
    InvalidSettings: "invalid_settings", None, false, "A setting is unknown, or its value is not allowed.";
    InvalidTimestamp: "invalid_timestamp", Some(400), false, "A timestamp is not in its canonical form.";
    InvalidToken: "invalid_token", Some(401), false, "The token is missing, unknown or revoked, or its account is gone.";
    KeyCommandFailed: "key_command_failed", None, false, "The command that was to print the key failed, or printed no key.";
    LeaderLost: "leader_lost", None, true, "The tab that had the file open was closed during the call.";
    Malformed: "malformed", Some(400), false, "The request is not what this call expects.";
    MethodNotAllowed: "method_not_allowed", Some(405), false, "The address exists, the method does not.";
    NotADataDirectory: "not_a_data_directory", None, false, "The directory is not a data directory of a Warren server.";
    NotADatabase: "not_a_database", None, false, "The file is not a SQLite database, or it is encrypted and no key was given.";
    NotAFile: "not_a_file", None, false, "The path is a directory or a device, or the file has more than one name.";
    NotFixable: "not_fixable", None, false, "No command can fix this finding.";
    NotFound: "not_found", Some(404), false, "There is no such address, account or device.";
    NotInSync: "not_in_sync", None, true, "The two sides still differ after everything was compared.";
    NotInstalled: "not_installed", None, false, "Something that the command needs is not installed, or not part of this build.";
    NotTracked: "not_tracked", None, false, "No table of the file is tracked.";
    NothingRecovered: "nothing_recovered", None, false, "Nothing in the file looks like a page of a database.";
    OriginNotAllowed: "origin_not_allowed", None, true, "The server does not answer pages of this origin.";
    PasswordRequired: "password_required", None, false, "The budget is encrypted with a password of its own.";
    PermissionDenied: "permission_denied", None, false, "The operating system does not permit it.";
    ProxyBodyLimit: "proxy_body_limit", None, false, "A proxy in front of the server refused one change as too large.";
    QuotaExceeded: "quota_exceeded", Some(507), false, "The account is full; the message names the limit.";
    ReadOnly: "read_only", None, false, "The file can only be read.";
    RecoveryPhraseInUse: "recovery_phrase_in_use", None, false, "The file has synced with another recovery phrase already.";
    RecoveryPhraseNotSet: "recovery_phrase_not_set", None, false, "The file has no recovery phrase: it does not encrypt end to end.";
    RecoveryPhraseRequired: "recovery_phrase_required", None, false, "The account is encrypted end to end, and the file has no recovery phrase.";
    RecoveryPhraseUnverified: "recovery_phrase_unverified", None, false, "Nothing on the server opens with this recovery phrase, because there is nothing yet.";
    Referenced: "referenced", None, false, "Other rows refer to this row.";
    RegistrationClosed: "registration_closed", Some(403), false, "Only the operator makes accounts here.";
    ResultLost: "result_lost", None, false, "The write was done, but its rows were lost when another tab took over.";
    RolledBack: "rolled_back", None, false, "A trigger rolled back the whole transaction.";
    SchemaChanged: "schema_changed", None, false, "A table is no longer as it was tracked, or a migration was edited after it ran.";
    SchemaTooNew: "schema_too_new", None, false, "A newer version of the page has run migrations that this one does not know.";
    ServerDamaged: "server_damaged", Some(503), true, "A file on the server is damaged, and its operator has to look at it.";
    ServerDiskFull: "server_disk_full", Some(507), true, "The server's disk is full; nothing was stored.";
    ServerNotConfigured: "server_not_configured", None, false, "The file does not sync with any server yet.";
    SqliteError: "sqlite_error", None, false, "SQLite reports an error that has no code of its own.";
    StaleCursor: "stale_cursor", Some(409), false, "The device has not pulled everything yet.";
    StillShown: "still_shown", None, false, "What was to be erased is what the table shows.";
    StorageFailed: "storage_failed", None, false, "The disk, or the browser's storage, failed to read or write.";
    StorageSchemaMismatch: "storage_schema_mismatch", None, false, "The schema in PostgreSQL is missing, or another version's.";
    StorageUnavailable: "storage_unavailable", None, false, "The browser gives this page no storage for files.";
    TableNotFound: "table_not_found", None, false, "No table of this name syncs.";
    Timeout: "timeout", Some(408), true, "It took too long: a request did not arrive in time, or no answer came.";
    TimestampConflict: "timestamp_conflict", Some(409), false, "A timestamp is known with another content: two devices share a node id, as copies of one file do.";
    TooLarge: "too_large", Some(413), false, "It is over a limit, which the message names.";
    TooManyAttempts: "too_many_attempts", Some(429), true, "Too many failed logins; Retry-After says when to try again.";
    TransactionEnded: "transaction_ended", None, false, "The transaction was rolled back before the call.";
    TransactionRequired: "transaction_required", None, false, "BEGIN, COMMIT and the like have to go through a transaction call.";
    Unavailable: "unavailable", Some(503), true, "The server is stopping, or its disk or database has failed and it recovers.";
    UndoNotFound: "undo_not_found", None, false, "There is no copy of the file from before a fix.";
    UnexpectedResponse: "unexpected_response", None, true, "Something else answered in the server's place, as a proxy does.";
    UnfinishedRestore: "unfinished_restore", None, false, "A restore into the data directory has not finished.";
    Unreachable: "unreachable", None, true, "The server does not answer.";
    UnsentChanges: "unsent_changes", None, false, "Changes have not been sent yet and would be lost.";
    UnsupportedMediaType: "unsupported_media_type", Some(415), false, "The body must be application/json or application/x-protobuf.";
    Untrackable: "untrackable", None, false, "The table cannot be tracked as it is.";
    Untrusted: "untrusted", None, false, "The server's certificate is not trusted.";
    VersionMismatch: "version_mismatch", None, false, "Another tab runs another version of the page.";
    WrongKey: "wrong_key", None, false, "The key does not open the file.";
    WrongPassword: "wrong_password", Some(401), false, "No account has this login and this password.";
    WrongRecoveryPhrase: "wrong_recovery_phrase", None, false, "The account is encrypted with another recovery phrase.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ErrorCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(())
    }
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Why something was refused or failed."))
            .enum_values(Some(Self::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

impl ToSchema for ErrorCode {}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| serde::de::Error::custom(format!("unknown error code {text}")))
    }
}

/// The body of every refusal.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    /// What went wrong.
    #[prost(message, optional, tag = "1")]
    #[schema(required, nullable = false)]
    pub error: Option<ErrorBody>,
}

/// Code and message of a refusal.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// One of the closed list.
    #[prost(string, tag = "1")]
    pub code: String,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
}

impl ErrorResponse {
    /// A refusal.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let body = ErrorBody { code: code.as_str().to_owned(), message: message.into() };
        Self { error: Some(body) }
    }

    /// The code, if it is one that this version knows.
    pub fn code(&self) -> Option<ErrorCode> {
        self.error.as_ref()?.code.parse().ok()
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        self.error.as_ref().map_or("", |error| &error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_alphabetical_and_read_back() {
        let texts: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
        }
    }

    #[test]
    fn the_document_lists_exactly_these_codes() {
        let document = include_str!("../../../docs/reference/formats/4-errors.md");
        let rows: Vec<_> = document.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<_> = ErrorCode::ALL
            .iter()
            .map(|c| {
                let status = c.http_status().map_or("–".to_owned(), |status| status.to_string());
                let retry = if c.is_retryable() { "yes" } else { "no" };
                format!("| `{c}` | {status} | {retry} | {} |", c.meaning())
            })
            .collect();
        assert_eq!(rows, expected);
    }
}
