//! One file of many, and what came of examining it.

use doctor::{DoctorFinding, DoctorReport, Severity};
use serde::Serialize;
use utoipa::ToSchema;

use super::history;
use crate::output::ErrorDetails;

/// One file of many.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExaminedFile {
    /// The path, as it was given or found.
    pub(super) path: String,
    /// What was found; null if the file could not be examined.
    pub(super) report: Option<DoctorReport>,
    /// Why the file could not be examined; null if it was.
    pub(super) error: Option<ErrorDetails>,
    /// Which of the findings the baseline has: places in `report.findings`, from 0.
    pub(super) known: Vec<usize>,
}

impl ExaminedFile {
    /// Findings that the baseline has not.
    pub(super) fn new_findings(&self) -> impl Iterator<Item = &DoctorFinding> {
        let findings = self.report.iter().flat_map(|report| &report.findings).enumerate();
        findings.filter(|(index, _)| !self.known.contains(index)).map(|(_, finding)| finding)
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.report.as_ref().is_some_and(|report| !report.integrity.complete)
    }

    pub(crate) fn is_notable(&self) -> bool {
        let is_report_notable = |report: &DoctorReport| {
            !report.findings.is_empty() || report.trend.as_ref().is_some_and(history::is_notable)
        };
        self.error.is_some()
            || self.is_incomplete()
            || self.report.as_ref().is_some_and(is_report_notable)
    }

    pub(crate) fn gravest(&self) -> Option<Severity> {
        self.new_findings().map(|finding| finding.severity).max()
    }
}
