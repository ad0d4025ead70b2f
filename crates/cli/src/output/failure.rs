//! Ends a command: computes its exit status, and prints its error.

use std::process::ExitCode;

use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::error_codes::code;
use super::error_hints::hint;
use super::exit_status::{NonZeroExit, exit_status};
use super::{EscapedText, Printer, print_error};

/// The output of a command that fails, with `--json`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorOutput {
    error: ErrorDetails,
}

/// The description of a failure.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorDetails {
    /// The error code, for programs (`docs/reference/formats/4-errors.md`).
    pub(crate) code: ErrorCode,
    /// The description of the error, for people.
    pub(crate) message: String,
    /// A suggestion for resolving the error, for people; null if there is no general one.
    pub(crate) hint: Option<String>,
}

impl From<&anyhow::Error> for ErrorDetails {
    fn from(error: &anyhow::Error) -> Self {
        let code = code(error);
        Self { code, message: message(error), hint: hint(error, code) }
    }
}

impl Printer {
    /// Returns the exit status of a command: 0, the status of its verdict, or the status of its
    /// error's code; prints the error.
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

    /// Prints an error: text on standard error, or a JSON value on standard output.
    pub(super) fn fail(self, error: ErrorDetails) {
        if self.json {
            // Every error can be represented in JSON, so this cannot fail.
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

/// Returns the messages of the error and its causes, each once: some errors repeat their source in
/// their own text.
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
