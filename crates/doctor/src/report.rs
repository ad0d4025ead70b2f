//! Defines the report of an examination: its findings, the finished checks and the skipped ones.

pub(crate) mod file_summary;
pub(crate) mod finding;
pub(crate) mod history_trend;
pub(crate) mod ignore_rule;
pub(crate) mod severity;
pub(crate) mod workload_summary;

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use self::file_summary::FileSummary;
use self::finding::DoctorFinding;
use self::history_trend::HistoryTrend;
use self::ignore_rule::{IgnoreRule, IgnoredFinding};
use self::severity::Severity;
use self::workload_summary::WorkloadSummary;
use crate::catalogue::finding_code::FindingCode;
use crate::format::to_ms;

/// The result of the examination of one file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoctorReport {
    /// The summary of the file that was examined.
    pub file: FileSummary,
    /// The findings, the most severe first.
    pub findings: Vec<DoctorFinding>,
    /// The findings that the user's rules ignore.
    pub ignored: Vec<IgnoredFinding>,
    /// The parts of the file that were checked, and to what extent: lines for people.
    pub checked: Vec<String>,
    /// The checks that were skipped; empty if none was.
    pub skipped: Vec<SkippedCheck>,
    /// The extent of the integrity check.
    pub integrity: IntegrityStatus,
    /// The summary of the statements that a program ran on the file; null without a log.
    pub workload: Option<WorkloadSummary>,
    /// The changes in the file since earlier runs; null without a history, and in the first run.
    pub trend: Option<HistoryTrend>,
    /// The duration of the examination in milliseconds.
    pub duration_ms: u64,
}

impl DoctorReport {
    /// Returns the severity of the most severe finding.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.first().map(|finding| finding.severity)
    }
}

/// The extent to which `PRAGMA integrity_check`, or the checks that replace it, compared the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct IntegrityStatus {
    /// Whether the whole file was compared.
    pub complete: bool,
    /// The parts that were not compared: lines for people. Also empty if nothing was compared at
    /// all.
    pub unchecked: Vec<String>,
}

/// A check, or a part of one, that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkippedCheck {
    /// The name of the check or of its part, for people.
    pub check: String,
    /// The reason why the check was skipped, for people.
    pub reason: String,
}

/// The codes of the findings that the integrity check reports.
const INTEGRITY_CODES: &[FindingCode] = &[
    FindingCode::ConstraintViolated,
    FindingCode::IndexBroken,
    FindingCode::PageBroken,
    FindingCode::UniqueViolated,
    FindingCode::VirtualTableBroken,
];

/// The collected results of the checks.
#[derive(Debug, Default)]
pub(crate) struct CheckResults {
    pub(crate) findings: Vec<DoctorFinding>,
    checked: Vec<String>,
    skipped: Vec<SkippedCheck>,
    pub(crate) integrity: IntegrityStatus,
    pub(crate) workload: Option<WorkloadSummary>,
    /// The tables and columns of the indexes that findings advise.
    advised: Vec<(String, Vec<String>)>,
}

impl CheckResults {
    pub(crate) fn add(&mut self, finding: DoctorFinding) {
        self.findings.push(finding);
    }

    pub(crate) fn add_checked(&mut self, what: impl Into<String>) {
        self.checked.push(what.into());
    }

    pub(crate) fn add_skipped(&mut self, check: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(SkippedCheck { check: check.into(), reason: reason.into() });
    }

    /// Records an index that a finding advises, if all of its keys are columns.
    pub(crate) fn advise(&mut self, table: &str, columns: Option<Vec<String>>) {
        self.advised.extend(columns.map(|columns| (table.to_owned(), columns)));
    }

    /// Checks whether a finding advises an index that begins with these columns, in any order.
    pub(crate) fn has_advised(&self, table: &str, columns: &[String]) -> bool {
        self.advised.iter().any(|(of, keys)| {
            of == table
                && keys.iter().take(columns.len()).filter(|key| columns.contains(key)).count()
                    == columns.len()
        })
    }

    pub(crate) fn has(&self, code: FindingCode) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    /// Discards the integrity findings.
    pub(crate) fn discard_page_faults(&mut self) {
        self.findings.retain(|finding| !INTEGRITY_CODES.contains(&finding.code));
        self.integrity = IntegrityStatus::default();
    }

    pub(crate) fn report(
        mut self,
        file: FileSummary,
        ignore: &[IgnoreRule],
        time: Duration,
    ) -> DoctorReport {
        let mut ignored = Vec::new();
        self.findings.retain(|finding| {
            let decided = ignore.iter().find(|it| it.is_meant(finding));
            let reason = decided.map(|decided| decided.reason.clone());
            ignored
                .extend(reason.map(|reason| IgnoredFinding { finding: finding.clone(), reason }));
            decided.is_none()
        });
        // The sort is stable: findings of the same severity stay in the order of the checks.
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let Self { findings, checked, skipped, integrity, workload, .. } = self;
        DoctorReport {
            file,
            findings,
            ignored,
            checked,
            skipped,
            integrity,
            workload,
            trend: None,
            duration_ms: to_ms(time),
        }
    }
}
