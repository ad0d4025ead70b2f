//! Defines the errors of commands themselves, for which no library has an error.

use protocol::ErrorCode;

/// An error of a command itself.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    message: String,
    /// The remedy, for people.
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// Creates an error; the message states a fact.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Creates an error for arguments that clap cannot check.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
