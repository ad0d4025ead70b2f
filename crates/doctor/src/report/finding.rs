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

/// What to do about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "language", content = "text")]
pub enum Fix {
    /// Statements for an SQLite shell on this file.
    Sql(String),
    /// A command line.
    Shell(String),
    /// What somebody must decide, or what no command can do.
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

/// One thing that was found in one file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoctorFinding {
    /// The code, which the catalogue explains.
    pub code: FindingCode,
    /// The severity of the code.
    pub severity: Severity,
    /// What was found, in one line, with the names of this file.
    pub summary: String,
    /// What shows it: lines for people.
    pub evidence: Vec<String>,
    /// The evidence for programs: names and values that depend on the code
    /// (`docs/reference/formats/13-doctor.md`).
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
    /// What it costs in this file; empty if nothing is known beyond what the catalogue says.
    pub impact: String,
    /// What to do about it.
    pub fix: Fix,
    /// The statements that `--fix` runs, with the key of the file; null if somebody must decide
    /// first.
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
