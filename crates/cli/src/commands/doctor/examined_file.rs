//! One file of many, and what came of examining it.

use std::path::PathBuf;

use doctor::{DoctorFinding, DoctorReport, Severity};
use serde::Serialize;

use super::history::HistoryTrend;

/// One file, and what was said of it.
#[derive(Serialize)]
pub(crate) struct ExaminedFile {
    pub(super) path: PathBuf,
    /// `None` if it could not be examined.
    pub(super) report: Option<DoctorReport>,
    pub(super) error: Option<ExamineFailure>,
    /// Places of the findings that the baseline has.
    pub(super) known: Vec<usize>,
    /// What has changed, with `--history`; `None` at the first run.
    pub(super) trend: Option<HistoryTrend>,
}

/// Why a file could not be examined.
#[derive(Serialize)]
pub(crate) struct ExamineFailure {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl ExaminedFile {
    /// Findings that the baseline has not.
    pub(super) fn new_findings(&self) -> impl Iterator<Item = &DoctorFinding> {
        let findings = self.report.iter().flat_map(|report| &report.findings).enumerate();
        findings.filter(|(index, _)| !self.known.contains(index)).map(|(_, finding)| finding)
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.report.as_ref().is_some_and(|report| !report.integrity.is_complete)
    }

    pub(crate) fn is_notable(&self) -> bool {
        self.error.is_some()
            || self.is_incomplete()
            || self.report.as_ref().is_some_and(|report| !report.findings.is_empty())
            || self.trend.as_ref().is_some_and(HistoryTrend::is_notable)
    }

    pub(crate) fn gravest(&self) -> Option<Severity> {
        self.new_findings().map(|finding| finding.severity).max()
    }
}
