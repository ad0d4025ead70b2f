//! What the doctor knows of a finding, by a code that somebody typed.

use doctor::CatalogueEntry;

use crate::output::CommandError;

/// The entry of a code; an error if no finding has it.
pub(super) fn catalogue_entry(code: &str) -> Result<&'static CatalogueEntry, CommandError> {
    doctor::entry(code).ok_or_else(|| {
        CommandError::usage(format!("no finding has the code {code:?}"))
            .with_hint("`warren doctor --list` lists the codes")
    })
}
