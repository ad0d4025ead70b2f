//! Defines a finding of a check: a code of the catalogue, with the evidence from this file.
//!
//! # Invariants
//! - The severity of a finding is that of its code: a code has only one meaning.
//!
//! # Not here
//! - The meaning of each code → `catalogue.rs`. The JSON → `docs/reference/formats/13-doctor.md`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::severity::Severity;
use crate::catalogue::finding_code::FindingCode;

/// The fix for a finding: its language and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "language", content = "text")]
pub enum Fix {
    /// SQL statements to run on this file in an SQLite shell.
    Sql(String),
    /// A command line to run in a shell.
    Shell(String),
    /// Advice in words, where a person must decide or no command can fix the problem.
    Advice(String),
}

impl Fix {
    /// Returns the fix as SQL statements, if it consists of them.
    fn sql(&self) -> Option<String> {
        match self {
            Self::Sql(sql) => Some(sql.clone()),
            Self::Shell(_) | Self::Advice(_) => None,
        }
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Sql(text) | Self::Shell(text) | Self::Advice(text)) = self;
        f.pad(text)
    }
}

/// A problem that was found in one file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoctorFinding {
    /// The code of the problem, which the catalogue explains.
    pub code: FindingCode,
    /// The severity of the finding, which its code determines.
    pub severity: Severity,
    /// The problem in one line, with the names from this file.
    pub summary: String,
    /// The evidence for the problem: lines for people.
    pub evidence: Vec<String>,
    /// The evidence for programs: names and values that depend on the code
    /// (`docs/reference/formats/13-doctor.md`).
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
    /// The impact of the problem on this file; empty if nothing is known beyond the catalogue
    /// entry.
    pub impact: String,
    /// The fix for the problem in this file.
    pub fix: Fix,
    /// The SQL statements that `--fix` runs, with the key of the file if it has one; null if a
    /// person must decide first.
    pub fix_sql: Option<String>,
}

impl DoctorFinding {
    /// Creates a finding with no impact beyond the catalogue's general text for the code.
    pub(crate) fn new(code: FindingCode, summary: impl Into<String>, fix: Fix) -> Self {
        Self {
            code,
            severity: code.entry().severity,
            summary: summary.into(),
            evidence: Vec::new(),
            details: Map::new(),
            impact: String::new(),
            fix_sql: fix.sql(),
            fix,
        }
    }

    /// Adds a line of evidence.
    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Adds a fact for programs.
    pub(crate) fn detail(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Replaces the fix.
    pub(crate) fn with_fix(mut self, fix: Fix) -> Self {
        self.fix_sql = fix.sql();
        self.fix = fix;
        self
    }

    /// Sets the statements that [`crate::fix()`] runs, where the fix is for a shell or a program.
    pub(crate) fn fix_sql(mut self, sql: &str) -> Self {
        self.fix_sql = Some(sql.to_owned());
        self
    }

    /// Sets the impact on this file.
    pub(crate) fn impact(mut self, impact: impl Into<String>) -> Self {
        self.impact = impact.into();
        self
    }
}
