//! What is to be known of one thing that the doctor can find.

use serde::Serialize;

use crate::report::severity::Severity;

/// What is to be known of a code.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CatalogueEntry {
    /// Stable, `snake_case`.
    pub code: &'static str,
    /// Of every finding with it.
    pub severity: Severity,
    /// What it is.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where that is from.
    pub source: &'static str,
    /// How it is found, with the thresholds.
    pub how: &'static str,
    /// What to do about it, in general; a finding says it for the file.
    pub mend: &'static str,
}
