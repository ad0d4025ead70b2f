//! Defines the catalogue entry, which explains one thing that the doctor can find.

use serde::Serialize;
use utoipa::ToSchema;

use super::finding_code::FindingCode;
use crate::report::severity::Severity;

/// What a finding code means.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CatalogueEntry {
    /// The code.
    pub code: FindingCode,
    /// The severity of every finding with this code.
    pub severity: Severity,
    /// What is found, in a few words.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// The page that says so, a URL.
    pub reference: &'static str,
    /// How it is found, with the thresholds.
    pub detection: &'static str,
    /// What to do about it in general; a finding says it for its file.
    pub fix: &'static str,
}
