//! The closed list of error codes, and what each means to a client.
//!
//! # Invariants
//! - A code is for ever: its text, its status and whether to retry do not change.
//! - `docs/formats/4-errors.md` lists the same codes; a test compares them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

macro_rules! codes {
    ($($variant:ident $text:literal $status:literal $retry:literal $meaning:literal,)*) => {
        /// Why a request was refused. Alphabetical; stable for ever.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $(#[doc = $meaning] $variant,)* }

        impl ErrorCode {
            /// Every code, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The HTTP status that it comes with.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            /// Whether the same request may succeed later without anybody changing anything.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retry),* }
            }

            /// What it means, for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    AccountExists "account_exists" 409 false "An account with this login exists.",
    AdminDisabled "admin_disabled" 403 false "The server was started without an operator's token (warren serve --admin-token-file).",
    Busy "busy" 503 true "The vault's queue is full.",
    ClockDrift "clock_drift" 422 false "A message is stamped more than five minutes ahead of the server's clock, and of what the vault holds.",
    DiskFull "disk_full" 507 true "The server's disk is full; nothing was stored.",
    EncryptionMismatch "encryption_mismatch" 409 false "The account's messages are encrypted end to end with another key, or not at all; or the request's are not.",
    HostNotAllowed "host_not_allowed" 421 false "The server is not asked under this name (warren serve --allow-host).",
    Internal "internal" 500 true "A fault of the server; its log says more.",
    InvalidDeviceName "invalid_device_name" 400 false "A device's name has at most 200 characters.",
    InvalidLogin "invalid_login" 400 false "A login is 1 to 64 letters, digits and . _ @ + -, beginning with a letter or digit.",
    InvalidPassword "invalid_password" 400 false "A password has 8 to 1,024 bytes.",
    InvalidTimestamp "invalid_timestamp" 400 false "A timestamp is not in its canonical form.",
    InvalidToken "invalid_token" 401 false "The token is missing, unknown or revoked, or its account is gone.",
    Malformed "malformed" 400 false "The request is not what this call expects.",
    MethodNotAllowed "method_not_allowed" 405 false "The address exists, the method does not.",
    NotFound "not_found" 404 false "No such address, or no such device.",
    QuotaExceeded "quota_exceeded" 507 false "The account is full; the message names the limit.",
    RegistrationClosed "registration_closed" 403 false "Only the operator makes accounts here.",
    ServerDamaged "server_damaged" 503 true "A file on the server is damaged, and its operator has to look at it.",
    StaleCursor "stale_cursor" 409 false "The device has not pulled everything yet.",
    Timeout "timeout" 408 true "The request did not arrive in time.",
    TimestampConflict "timestamp_conflict" 409 false "A timestamp is known with another content: two devices share a node id, as copies of one file do.",
    TooLarge "too_large" 413 false "The request is over a limit, which the message names.",
    TooManyAttempts "too_many_attempts" 429 true "Too many failed logins; Retry-After says when to try again.",
    Unavailable "unavailable" 503 true "The server is stopping, or its disk has failed and the vault recovers.",
    UnsupportedMediaType "unsupported_media_type" 415 false "The body must be application/json or application/x-protobuf.",
    WrongPassword "wrong_password" 401 false "No account has this login and this password.",
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
        let document = include_str!("../../../docs/formats/4-errors.md");
        let rows: Vec<_> = document.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<_> = ErrorCode::ALL
            .iter()
            .map(|c| {
                let retry = if c.is_retryable() { "yes" } else { "no" };
                format!("| `{c}` | {} | {retry} | {} |", c.status(), c.meaning())
            })
            .collect();
        assert_eq!(rows, expected);
    }
}
