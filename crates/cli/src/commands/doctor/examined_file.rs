//! Defines the result of examining one of several files.

use doctor::{DoctorFinding, DoctorReport, Severity};
use serde::Serialize;
use utoipa::ToSchema;

use super::history;
use crate::output::ErrorDetails;

/// One file in the output of `warren doctor` for several files.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExaminedFile {
    /// The path of the file, as given on the command line or found in a directory.
    pub(super) path: String,
    /// The report on the file; null if it could not be examined.
    pub(super) report: Option<DoctorReport>,
    /// The error that prevented the examination; null if the file was examined.
    pub(super) error: Option<ErrorDetails>,
    /// The indexes, from 0, of the findings in `report.findings` that the baseline contains.
    pub(super) known: Vec<usize>,
}

impl ExaminedFile {
    /// Returns the findings that are not in the baseline.
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
