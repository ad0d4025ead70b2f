//! Defines the catalogue entry, which explains one thing that the doctor can find.

use serde::Serialize;
use utoipa::ToSchema;

use super::finding_code::FindingCode;
use crate::report::severity::Severity;

/// The explanation of a finding code.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CatalogueEntry {
    /// The finding code that the entry explains.
    pub code: FindingCode,
    /// The severity of every finding with this code.
    pub severity: Severity,
    /// The problem in a few words.
    pub title: &'static str,
    /// The reason why the problem matters.
    pub why: &'static str,
    /// The URL of the page that documents the reason.
    pub reference: &'static str,
    /// The conditions under which the doctor reports the problem, with their thresholds.
    pub detection: &'static str,
    /// The general fix for the problem; a finding has the fix for its file.
    pub fix: &'static str,
}
