//! How a command ends: its exit status, and what it says of an error.

use std::process::ExitCode;

use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::error_codes::code;
use super::error_hints::hint;
use super::exit_status::{NonZeroExit, exit_status};
use super::{EscapedText, Printer, print_error};

/// What a command prints with `--json` when it fails.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorOutput {
    error: ErrorDetails,
}

/// Why something failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorDetails {
    /// What a program branches on (`docs/reference/formats/4-errors.md`).
    pub(crate) code: ErrorCode,
    /// What happened, for people.
    pub(crate) message: String,
    /// What to do about it, for people; null if nothing helps in general.
    pub(crate) hint: Option<String>,
}

impl From<&anyhow::Error> for ErrorDetails {
    fn from(error: &anyhow::Error) -> Self {
        let code = code(error);
        Self { code, message: message(error), hint: hint(error, code) }
    }
}

impl Printer {
    /// Reports how the command ended: 0, or the error and the status of its code, or the status of
    /// its verdict.
    pub(crate) fn exit(self, result: anyhow::Result<()>) -> ExitCode {
        let Err(error) = result else { return ExitCode::SUCCESS };
        if let Some(NonZeroExit(status)) = error.downcast_ref() {
            return ExitCode::from(*status);
        }
        let error = ErrorDetails::from(&error);
        let status = ExitCode::from(exit_status(error.code));
        self.fail(error);
        status
    }

    /// An error: text on standard error, or a JSON value on standard output.
    pub(super) fn fail(self, error: ErrorDetails) {
        if self.json {
            // There is no value in it that JSON has no place for.
            drop(self.json(&ErrorOutput { error }));
            return;
        }
        let ErrorDetails { code, message, hint } = error;
        print_error(&EscapedText::line(format_args!("warren: {message} [{code}]")));
        if let Some(hint) = hint {
            print_error(&EscapedText::line(format_args!("hint: {hint}")));
        }
    }
}

/// The error and what it comes from, each part once: some errors repeat their source in their own
/// text.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for part in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = part;
        } else if !message.contains(&part) {
            message = format!("{message}: {part}");
        }
    }
    message
}
