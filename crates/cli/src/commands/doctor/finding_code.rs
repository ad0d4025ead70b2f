//! Parses a finding code from the command line.

use doctor::FindingCode;

use crate::output::CommandError;

/// Returns the code, or an error if no finding has it.
pub(super) fn finding_code(text: &str) -> Result<FindingCode, CommandError> {
    text.parse().map_err(|()| {
        CommandError::usage(format!("unknown finding code {text:?}"))
            .with_hint("run `warren doctor --list` to see all codes")
    })
}
