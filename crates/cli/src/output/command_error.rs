//! Why a command refuses what it was asked, where no library says so.

use protocol::ErrorCode;

/// An error of a command's own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// The message states a fact.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Arguments that clap cannot check.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
