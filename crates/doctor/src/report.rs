//! What an examination found, what it looked at, and what it did not.

use std::time::Duration;

use serde::Serialize;

use crate::finding::{Finding, Severity};

/// The whole of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What file it is.
    pub about: About,
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// What was checked, a line each, with how much of it.
    pub checked: Vec<String>,
    /// What was not, and why.
    pub skipped: Vec<Skipped>,
    /// How long it took.
    pub seconds: f64,
}

impl Report {
    /// The gravest finding's.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.first().map(|finding| finding.severity)
    }
}

/// What file it is. What could not be read is not there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
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
    pub processes: Vec<crate::Process>,
    /// How it was opened: `immutable`, `shared`, or not at all.
    pub opened: Option<&'static str>,
    /// The file changed while it was looked at.
    pub changed: bool,
}

/// What was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which check, or which part of it.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Where the checks write.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) findings: Vec<Finding>,
    checked: Vec<String>,
    skipped: Vec<Skipped>,
}

impl Log {
    pub(crate) fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(crate) fn check(&mut self, what: impl Into<String>) {
        self.checked.push(what.into());
    }

    pub(crate) fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(Skipped { what: what.into(), why: why.into() });
    }

    pub(crate) fn has(&self, code: &str) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    /// Takes back what was found wrong in the pages.
    pub(crate) fn forget_faults(&mut self) {
        self.findings.retain(|finding| finding.code != "page_broken");
    }

    pub(crate) fn report(mut self, about: About, time: Duration) -> Report {
        // Stable: within a severity, the order of the checks.
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let seconds = time.as_secs_f64();
        let Self { findings, checked, skipped } = self;
        Report { about, findings, checked, skipped, seconds }
    }
}
