//! What an examination found, what it looked at, and what it did not.

pub(crate) mod finding;
pub(crate) mod severity;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use self::finding::DoctorFinding;
use self::severity::Severity;

/// The whole of it.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReport {
    /// What file it is.
    pub about: FileSummary,
    /// The gravest first.
    pub findings: Vec<DoctorFinding>,
    /// What somebody has decided to leave as it is.
    pub ignored: Vec<IgnoredFinding>,
    /// What was checked, a line each, with how much of it.
    pub checked: Vec<String>,
    /// What was not, and why.
    pub skipped: Vec<SkippedCheck>,
    /// How far the file was compared with itself.
    pub integrity: IntegrityStatus,
    /// What a program asked of it, if its log was given.
    pub load: Option<WorkloadSummary>,
    /// How long it took.
    pub seconds: f64,
}

impl DoctorReport {
    /// The gravest finding's.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.first().map(|finding| finding.severity)
    }
}

/// What file it is. What could not be read is not there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSummary {
    /// Where, without symbolic links.
    pub path: String,
    /// Of the main file.
    pub file_bytes: u64,
    /// Of the WAL; not there without one.
    pub wal_bytes: Option<u64>,
    /// Bytes of a page.
    pub page_bytes: Option<u32>,
    /// Pages, free ones included.
    pub pages_count: Option<u64>,
    /// Free pages.
    pub free_pages_count: Option<u64>,
    /// `wal`, or `rollback`: which of the rollback journals, the file does not say.
    pub journal: Option<&'static str>,
    /// `none`, or its name.
    pub cipher: Option<&'static str>,
    /// Of the SQLite that wrote last.
    pub sqlite_version: Option<String>,
    /// Ordinary tables.
    pub tables_count: Option<usize>,
    /// Indexes, automatic ones included.
    pub indexes_count: Option<usize>,
    /// What holds the file.
    pub file_system: Option<String>,
    /// Processes that have it open.
    pub processes: Vec<crate::ProcessInfo>,
    /// How it was opened: `immutable`, `shared`, or not at all.
    pub opened: Option<&'static str>,
    /// The file changed while it was looked at.
    pub changed: bool,
}

/// How far `PRAGMA integrity_check`, or what stands for it, came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntegrityStatus {
    /// All of it was done: what it finds, was found.
    pub is_complete: bool,
    /// What was not compared, a line each; empty, too, if nothing was looked at at all.
    pub unchecked: Vec<String>,
}

/// What was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedCheck {
    /// Which check, or which part of it.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A finding that somebody has decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The finding's.
    pub code: String,
    /// Of what: a table, an index, a column; `None` for whatever it is.
    pub name: Option<String>,
    /// Why.
    pub why: String,
}

/// Fields of a finding that say what it is about.
const SUBJECTS: &[&str] = &[
    "column", "columns", "index", "indexes", "name", "table", "tables", "triggers", "unset", "view",
];

impl IgnoreRule {
    fn is_meant(&self, finding: &DoctorFinding) -> bool {
        let is_name = |value: &Value| match value {
            Value::String(text) => Some(text) == self.name.as_ref(),
            Value::Array(values) => {
                values.iter().any(|value| value.as_str() == self.name.as_deref())
            }
            _ => false,
        };
        let is_of = || {
            let mut fields = finding.fields.iter();
            fields.any(|(field, value)| SUBJECTS.contains(&field.as_str()) && is_name(value))
        };
        finding.code == self.code && (self.name.is_none() || is_of())
    }
}

/// A finding that somebody has decided about, and why.
#[derive(Clone, Debug, Serialize)]
pub struct IgnoredFinding {
    /// The finding.
    pub finding: DoctorFinding,
    /// Why it is left as it is.
    pub why: String,
}

/// What a program asked of the file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorkloadSummary {
    /// Statements that read or write rows.
    pub statements_count: u64,
    /// Statements that do not: BEGIN, PRAGMA, CREATE.
    pub others_count: u64,
    /// Lines of the log that are of no statement.
    pub unread_lines_count: u64,
    /// Statements without their values.
    pub shapes_count: usize,
    /// The log says how long they took.
    pub is_timed: bool,
    /// The heaviest first.
    pub queries: Vec<LoadQuery>,
    /// What this file cannot be asked.
    pub refused: Vec<RejectedStatement>,
    /// Indexes that none of it uses, of the tables that it is about.
    pub unused_indexes: Vec<String>,
}

/// The statements of one shape.
#[derive(Clone, Debug, Serialize)]
pub struct LoadQuery {
    /// With `?` for each value.
    pub shape: String,
    /// One of them.
    pub example: String,
    /// How many there were.
    pub calls: u64,
    /// How long they took in all, by the log.
    pub logged_us: Option<f64>,
    /// Of the whole load's time, by the log or else as measured: 0 to 1.
    pub share: Option<f64>,
    /// Lines of EXPLAIN QUERY PLAN.
    pub plan: Vec<String>,
    /// What the example takes, if it could be run.
    pub measured_before_us: Option<f64>,
    /// And with the indexes that are advised.
    pub measured_after_us: Option<f64>,
    /// Of SQLite's virtual machine.
    pub steps_before: Option<i32>,
    /// And with the indexes that are advised.
    pub steps_after: Option<i32>,
    /// Those of the advised indexes that it uses.
    pub indexes: Vec<String>,
}

/// A statement that this file cannot be asked.
#[derive(Clone, Debug, Serialize)]
pub struct RejectedStatement {
    /// With `?` for each value.
    pub shape: String,
    /// How many there were.
    pub calls: u64,
    /// What SQLite said.
    pub message: String,
}

/// What the integrity check finds.
const INTEGRITY_CODES: &[&str] = &[
    "constraint_violated",
    "index_broken",
    "page_broken",
    "unique_violated",
    "virtual_table_broken",
];

/// Where the checks write.
#[derive(Debug, Default)]
pub(crate) struct CheckResults {
    pub(crate) findings: Vec<DoctorFinding>,
    checked: Vec<String>,
    skipped: Vec<SkippedCheck>,
    pub(crate) integrity: IntegrityStatus,
    pub(crate) load: Option<WorkloadSummary>,
    /// Tables and columns of the indexes that findings advise.
    advised: Vec<(String, Vec<String>)>,
}

impl CheckResults {
    pub(crate) fn add(&mut self, finding: DoctorFinding) {
        self.findings.push(finding);
    }

    pub(crate) fn add_checked(&mut self, what: impl Into<String>) {
        self.checked.push(what.into());
    }

    pub(crate) fn add_skipped(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(SkippedCheck { what: what.into(), why: why.into() });
    }

    /// Notes an index that a finding advises, if it is on columns alone.
    pub(crate) fn advise(&mut self, table: &str, columns: Option<Vec<String>>) {
        self.advised.extend(columns.map(|columns| (table.to_owned(), columns)));
    }

    /// Will there be an index that begins with these columns, in any order?
    pub(crate) fn has_advised(&self, table: &str, columns: &[String]) -> bool {
        self.advised.iter().any(|(of, keys)| {
            of == table
                && keys.iter().take(columns.len()).filter(|key| columns.contains(key)).count()
                    == columns.len()
        })
    }

    pub(crate) fn has(&self, code: &str) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    /// Takes back what was found wrong in the content.
    pub(crate) fn discard_page_faults(&mut self) {
        self.findings.retain(|finding| !INTEGRITY_CODES.contains(&finding.code));
        self.integrity = IntegrityStatus::default();
    }

    pub(crate) fn report(
        mut self,
        about: FileSummary,
        ignore: &[IgnoreRule],
        time: Duration,
    ) -> DoctorReport {
        let mut ignored = Vec::new();
        self.findings.retain(|finding| {
            let decided = ignore.iter().find(|it| it.is_meant(finding));
            let why = decided.map(|decided| decided.why.clone());
            ignored.extend(why.map(|why| IgnoredFinding { finding: finding.clone(), why }));
            decided.is_none()
        });
        // Stable: within a severity, the order of the checks.
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let seconds = time.as_secs_f64();
        let Self { findings, checked, skipped, integrity, load, .. } = self;
        DoctorReport { about, findings, ignored, checked, skipped, integrity, load, seconds }
    }
}
