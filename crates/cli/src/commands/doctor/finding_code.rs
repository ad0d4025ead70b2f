//! A finding code that somebody typed.

use doctor::FindingCode;

use crate::output::CommandError;

/// The code; an error if no finding has it.
pub(super) fn finding_code(text: &str) -> Result<FindingCode, CommandError> {
    text.parse().map_err(|()| {
        CommandError::usage(format!("unknown finding code {text:?}"))
            .with_hint("run `warren doctor --list` to see all codes")
    })
}
