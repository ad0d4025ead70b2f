//! Defines the JSON output of `warren doctor` for several files.

use std::collections::BTreeMap;

use doctor::{FindingCode, Severity};
use serde::Serialize;
use utoipa::ToSchema;

use super::examined_file::ExaminedFile;

/// The output of `warren doctor` for several files.
#[derive(Serialize, ToSchema)]
pub(crate) struct FleetReport {
    /// The files with findings, errors or changes, and the files that were not fully compared.
    pub(super) files: Vec<ExaminedFile>,
    /// The totals of all files.
    pub(super) summary: FleetSummary,
}

/// The totals of all files that `warren doctor` examined in one run.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct FleetSummary {
    /// The number of files, including those that could not be examined.
    pub(super) files_count: usize,
    /// The number of files with a new finding of the severity `error`.
    pub(super) errors_count: usize,
    /// The number of files with a new finding of the severity `warning`, and none above it.
    pub(super) warnings_count: usize,
    /// The number of files that were not fully compared.
    pub(super) incomplete_count: usize,
    /// The number of files that could not be examined.
    pub(super) unexamined_count: usize,
    /// The number of new findings of each code.
    pub(super) finding_counts: BTreeMap<FindingCode, usize>,
    /// The number of findings that the baseline already contains.
    pub(super) known_count: usize,
    /// The number of findings that the rules of `--ignore` exclude.
    pub(super) ignored_count: usize,
    /// The rules of `--ignore` that matched no finding, each as `file, line number: code`.
    pub(super) unused_ignore_rules: Vec<String>,
    /// The findings of the baseline that no longer exist, each as `path: code names`.
    pub(super) gone: Vec<String>,
    /// The duration of all examinations in milliseconds.
    pub(super) duration_ms: u64,
}

impl FleetSummary {
    pub(super) fn count(&mut self, examined: &ExaminedFile) {
        self.files_count += 1;
        self.known_count += examined.known.len();
        match examined.gravest() {
            Some(Severity::Error) => self.errors_count += 1,
            Some(Severity::Warning) => self.warnings_count += 1,
            _ => {}
        }
        self.incomplete_count += usize::from(examined.is_incomplete());
        self.unexamined_count += usize::from(examined.error.is_some());
        for finding in examined.new_findings() {
            *self.finding_counts.entry(finding.code).or_default() += 1;
        }
    }
}
