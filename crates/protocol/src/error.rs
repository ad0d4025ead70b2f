//! Defines the closed list of error codes for HTTP, the command line and browsers.
//!
//! # Invariants
//! - A code never changes, nor do its text, its status and whether to retry.
//! - `docs/reference/formats/4-errors.md` lists the same codes; a test compares them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($variant:ident: $text:literal, $status:expr, $retry:literal, $meaning:literal;)*) => {
        /// The reason why an operation was rejected or failed. The codes are in alphabetical order
        /// and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $(#[doc = $meaning] $variant,)* }

        impl ErrorCode {
            /// Every code, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the code as programs read it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// Returns the HTTP status of the code, or `None` if no server returns it.
            pub const fn http_status(self) -> Option<u16> {
                match self { $(Self::$variant => $status),* }
            }

            /// Returns whether the same request may succeed later without any other change.
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retry),* }
            }

            /// Returns the meaning of the code, for people.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    AccountDiffers: "account_differs", None, false, "The file belongs to a different account.";
    AccountExists: "account_exists", Some(409), false, "An account with this login exists.";
    AccountNotEncrypted: "account_not_encrypted", None, false, "The file is end-to-end encrypted, but the server reports that the account is not.";
    AddressInUse: "address_in_use", None, false, "Another program is listening on this address.";
    AdminDisabled: "admin_disabled", Some(403), false, "The server was started without an admin token.";
    AmbiguousId: "ambiguous_id", None, false, "More than one id starts with these characters.";
    AmbiguousName: "ambiguous_name", None, false, "More than one budget has this name.";
    AppTooNew: "app_too_new", None, false, "A budget has changes from a newer app than the one that uploaded its file.";
    BudgetFileMissing: "budget_file_missing", None, false, "No app has uploaded the budget's file yet.";
    BudgetNotDeleted: "budget_not_deleted", None, false, "The budget is not deleted, so it cannot be restored.";
    BudgetNotFound: "budget_not_found", None, false, "No budget has this id or name.";
    Busy: "busy", Some(503), true, "A resource is in use: a queue is full, or another program has the file open or locked.";
    Cancelled: "cancelled", None, false, "The caller canceled the operation.";
    ClockDrift: "clock_drift", Some(422), false, "A message's timestamp is more than five minutes ahead of the server's clock and ahead of the newest message in the vault.";
    Closed: "closed", None, false, "The database is closed.";
    ConfirmationRequired: "confirmation_required", None, false, "The command is destructive and was not confirmed.";
    ConflictNotFound: "conflict_not_found", None, false, "No conflict has this id.";
    ConstraintViolated: "constraint_violated", None, false, "A constraint of the table does not allow the change.";
    CorruptBackup: "corrupt_backup", None, false, "The backup is damaged or incomplete.";
    CorruptBudget: "corrupt_budget", None, false, "A budget's file, stored state or message does not have the format that the apps write.";
    CorruptDatabase: "corrupt_database", None, false, "The database file or its sync metadata is damaged.";
    CorruptMessage: "corrupt_message", None, false, "A message in the file cannot be read.";
    DataDirectoryInUse: "data_directory_in_use", None, true, "Another process is using the data directory.";
    Deleted: "deleted", None, false, "The database was deleted, here or in another tab.";
    DiskFull: "disk_full", None, true, "The disk is full, or the browser grants no more storage; nothing was stored.";
    EncryptionMismatch: "encryption_mismatch", Some(409), false, "The account and the request differ in end-to-end encryption: their keys differ, or only one of them is encrypted.";
    EncryptionUndecided: "encryption_undecided", None, false, "The account is new, and it is not decided yet whether it is end-to-end encrypted.";
    EngineUnavailable: "engine_unavailable", None, false, "The browser could not load the worker or the WebAssembly module.";
    FileExists: "file_exists", None, false, "The file or directory already exists and is not replaced.";
    FileNotFound: "file_not_found", None, false, "The file or directory does not exist.";
    FixFailed: "fix_failed", None, false, "A fix did not help and was undone; the file is unchanged.";
    FormatTooNew: "format_too_new", None, false, "The data was written by a newer version of Warren.";
    FormatTooOld: "format_too_old", None, false, "The data was written by an older version of Warren, in a format that is no longer supported.";
    HostNotAllowed: "host_not_allowed", Some(421), false, "The server does not answer requests for this host name.";
    Internal: "internal", Some(500), true, "A bug in Warren, or an error without its own code; on a server, the log has details.";
    InvalidArgument: "invalid_argument", None, false, "An argument is missing, unknown or has a value that is not allowed.";
    InvalidCertificate: "invalid_certificate", None, false, "The certificate or its key cannot be read.";
    InvalidDeviceName: "invalid_device_name", Some(400), false, "A device's name has at most 200 characters.";
    InvalidFile: "invalid_file", None, false, "A file passed to a command does not have the format that the command reads.";
    InvalidKey: "invalid_key", None, false, "The key, key file or passphrase has the wrong length or format.";
    InvalidLogin: "invalid_login", Some(400), false, "A login has 1 to 64 letters, digits and . _ @ + -, and starts with a letter or digit.";
    InvalidMailAddress: "invalid_mail_address", None, false, "The mail address is not valid; the message gives the reason.";
    InvalidMailboxName: "invalid_mailbox_name", None, false, "A mailbox cannot have this name; the message gives the reason.";
    InvalidPassword: "invalid_password", Some(400), false, "A password has 8 to 1,024 bytes.";
    InvalidQuery: "invalid_query", None, false, "The query is not valid in SQLite.";
    InvalidRecoveryPhrase: "invalid_recovery_phrase", None, false, "The words are not a valid 24-word recovery phrase.";
    InvalidSettings: "invalid_settings", None, false, "A setting is unknown or its value is not allowed.";
    InvalidTimestamp: "invalid_timestamp", Some(400), false, "A timestamp is not in canonical form.";
    InvalidToken: "invalid_token", Some(401), false, "The token is missing, unknown or revoked, or its account no longer exists.";
    KeyCommandFailed: "key_command_failed", None, false, "The key command failed or printed no key.";
    LeaderLost: "leader_lost", None, true, "The tab that had the file open was closed during the call.";
    MailAddressNotFound: "mail_address_not_found", None, false, "No account has this mail address.";
    MailAddressTaken: "mail_address_taken", None, false, "Another account has this mail address.";
    MailNotSetUp: "mail_not_set_up", None, false, "Mail is not set up for the account.";
    MailboxNotFound: "mailbox_not_found", None, false, "The account has no mailbox with this name.";
    Malformed: "malformed", Some(400), false, "The request does not have the format that this call expects.";
    MessageNotFound: "message_not_found", None, false, "The mailbox has no message with this UID.";
    MethodNotAllowed: "method_not_allowed", Some(405), false, "The path exists but does not support this method.";
    NotADataDirectory: "not_a_data_directory", None, false, "The directory is not a Warren data directory.";
    NotADatabase: "not_a_database", None, false, "The file is not a SQLite database, or it is encrypted and no key was given.";
    NotAFile: "not_a_file", None, false, "The path is a directory or a device, or the file has hard links.";
    NotFixable: "not_fixable", None, false, "No command can fix this finding.";
    NotFound: "not_found", Some(404), false, "The address, account or device does not exist.";
    NotInSync: "not_in_sync", None, true, "The two sides still differ after a full comparison.";
    NotInstalled: "not_installed", None, false, "A required component is not installed or not part of this build.";
    NotTracked: "not_tracked", None, false, "The file has no tracked tables.";
    NothingRecovered: "nothing_recovered", None, false, "Nothing in the file looks like a page of a database.";
    OriginNotAllowed: "origin_not_allowed", None, true, "The server does not accept requests from pages of this origin.";
    PasswordRequired: "password_required", None, false, "The budget is encrypted with its own password.";
    PermissionDenied: "permission_denied", None, false, "The operating system does not allow the operation.";
    ProxyBodyLimit: "proxy_body_limit", None, false, "A proxy in front of the server rejected a change as too large.";
    QuotaExceeded: "quota_exceeded", Some(507), false, "The account is full; the message names the limit.";
    ReadOnly: "read_only", None, false, "The file is read-only.";
    RecoveryPhraseInUse: "recovery_phrase_in_use", None, false, "The file already uses a different recovery phrase.";
    RecoveryPhraseNotSet: "recovery_phrase_not_set", None, false, "The file has no recovery phrase and is not end-to-end encrypted.";
    RecoveryPhraseRequired: "recovery_phrase_required", None, false, "The account is end-to-end encrypted, and the file has no recovery phrase.";
    RecoveryPhraseUnverified: "recovery_phrase_unverified", None, false, "The recovery phrase cannot be verified because the account is empty.";
    Referenced: "referenced", None, false, "Other rows refer to this row.";
    RegistrationClosed: "registration_closed", Some(403), false, "Only the operator can create accounts on this server.";
    ResultLost: "result_lost", None, false, "The write succeeded, but its result rows were lost when another tab took over.";
    RolledBack: "rolled_back", None, false, "A trigger rolled back the whole transaction.";
    SchemaChanged: "schema_changed", None, false, "A table has changed since it was tracked, or a migration was edited after it ran.";
    SchemaTooNew: "schema_too_new", None, false, "A newer version of the page has run migrations that this version does not have.";
    ServerDamaged: "server_damaged", Some(503), true, "A file on the server is damaged; its operator has to check it.";
    ServerDiskFull: "server_disk_full", Some(507), true, "The server's disk is full; nothing was stored.";
    ServerNotConfigured: "server_not_configured", None, false, "No server is configured for the file.";
    SqliteError: "sqlite_error", None, false, "SQLite reported an error that has no code of its own.";
    StaleCursor: "stale_cursor", Some(409), false, "The device has not pulled all messages yet.";
    StillShown: "still_shown", None, false, "The table still shows the value to erase.";
    StorageFailed: "storage_failed", None, false, "The disk or the browser's storage failed to read or write.";
    StorageSchemaMismatch: "storage_schema_mismatch", None, false, "The PostgreSQL schema is missing or has another version.";
    StorageUnavailable: "storage_unavailable", None, false, "The browser does not provide file storage to this page.";
    TableNotFound: "table_not_found", None, false, "No synced table has this name.";
    Timeout: "timeout", Some(408), true, "A request or a response did not arrive in time.";
    TimestampConflict: "timestamp_conflict", Some(409), false, "The timestamp already exists with different content: two devices share a node id, as copies of a file do.";
    TooLarge: "too_large", Some(413), false, "A limit was exceeded; the message names it.";
    TooManyAttempts: "too_many_attempts", Some(429), true, "Too many failed logins; Retry-After gives the time to wait.";
    TooManyMailAddresses: "too_many_mail_addresses", None, false, "An account has at most 1,000 mail addresses.";
    TooManyMailPasswords: "too_many_mail_passwords", None, false, "An account has at most 100 mail passwords.";
    TransactionEnded: "transaction_ended", None, false, "The transaction was rolled back before the call.";
    TransactionRequired: "transaction_required", None, false, "BEGIN, COMMIT and similar statements must go through a transaction call.";
    Unavailable: "unavailable", Some(503), true, "The server is stopping, or is recovering from a disk or database failure.";
    UndoNotFound: "undo_not_found", None, false, "No copy of the file from before a fix exists.";
    UnexpectedResponse: "unexpected_response", None, true, "Something other than the server responded, such as a proxy.";
    UnfinishedRestore: "unfinished_restore", None, false, "The restore into the data directory is incomplete.";
    Unreachable: "unreachable", None, true, "The server does not respond.";
    UnsentChanges: "unsent_changes", None, false, "Unsent changes would be lost.";
    UnsupportedMediaType: "unsupported_media_type", Some(415), false, "The body must be application/json or application/x-protobuf.";
    Untrackable: "untrackable", None, false, "The table does not meet the requirements for tracking.";
    Untrusted: "untrusted", None, false, "The server's certificate is not trusted.";
    VersionMismatch: "version_mismatch", None, false, "Another tab runs a different version of the page.";
    WrongKey: "wrong_key", None, false, "The key does not open the file.";
    WrongPassword: "wrong_password", Some(401), false, "No account has this login and this password.";
    WrongRecoveryPhrase: "wrong_recovery_phrase", None, false, "The account is encrypted with a different recovery phrase.";
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

/// The body of every error response.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    /// The code and the message of the error.
    #[prost(message, optional, tag = "1")]
    #[schema(required, nullable = false)]
    pub error: Option<ErrorBody>,
}

/// The code and the message of an error.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The code of the error, one of a closed list.
    #[prost(string, tag = "1")]
    pub code: String,
    /// The message for people.
    #[prost(string, tag = "2")]
    pub message: String,
}

impl ErrorResponse {
    /// Creates a refusal.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let body = ErrorBody { code: code.as_str().to_owned(), message: message.into() };
        Self { error: Some(body) }
    }

    /// Returns the code, if this version knows it.
    pub fn code(&self) -> Option<ErrorCode> {
        self.error.as_ref()?.code.parse().ok()
    }

    /// Returns the message for people.
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
