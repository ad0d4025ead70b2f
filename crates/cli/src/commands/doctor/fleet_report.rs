//! What `warren doctor` finds in many files.

use std::collections::BTreeMap;

use doctor::{FindingCode, Severity};
use serde::Serialize;
use utoipa::ToSchema;

use super::examined_file::ExaminedFile;

/// What was found in many files.
#[derive(Serialize, ToSchema)]
pub(crate) struct FleetReport {
    /// The files with findings, errors or changes, and those that were not compared as a whole.
    pub(super) files: Vec<ExaminedFile>,
    /// What all files come to.
    pub(super) summary: FleetSummary,
}

/// What many files come to.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct FleetSummary {
    /// How many files were to be examined.
    pub(super) files_count: usize,
    /// How many files have a new finding with the severity `error`.
    pub(super) errors_count: usize,
    /// How many files have a new finding with the severity `warning`, and none above it.
    pub(super) warnings_count: usize,
    /// How many files were not compared as a whole.
    pub(super) incomplete_count: usize,
    /// How many files could not be examined.
    pub(super) unexamined_count: usize,
    /// How many new findings there are of each code.
    pub(super) finding_counts: BTreeMap<FindingCode, usize>,
    /// How many findings the baseline has.
    pub(super) known_count: usize,
    /// How many findings the rules of `--ignore` leave as they are.
    pub(super) ignored_count: usize,
    /// The lines of `--ignore` for what was not found.
    pub(super) unused_ignore_rules: Vec<String>,
    /// The findings of the baseline that are no longer there, as `path: code names`.
    pub(super) gone: Vec<String>,
    /// How long all examinations took.
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
