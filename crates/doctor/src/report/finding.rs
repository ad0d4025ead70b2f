//! What a check finds: a code of the catalogue, with the evidence from this file.
//!
//! # Invariants
//! - A finding's severity is its code's: the same code never means two things.
//!
//! # Not here
//! - What each code means → `catalogue.rs`. The JSON → `docs/formats/13-doctor.md`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::severity::Severity;
use crate::catalogue;
use crate::catalogue::entry::CatalogueEntry;

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "language", content = "text")]
pub enum Fix {
    /// Statements for an SQLite shell on this file.
    Sql(String),
    /// A command line.
    Shell(String),
    /// What no command can do.
    Advice(String),
}

impl Fix {
    /// As statements.
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
#[derive(Clone, Debug, Serialize)]
pub struct DoctorFinding {
    /// Which of the catalogue.
    pub code: &'static str,
    /// The code's.
    pub severity: Severity,
    /// What it is, in one line, with the names of this file.
    pub what: String,
    /// What shows it, a line each.
    pub evidence: Vec<String>,
    /// The same for programs; which fields, `docs/formats/13-doctor.md` says.
    pub fields: Map<String, Value>,
    /// What it costs here.
    pub cost: String,
    /// What to do about it.
    pub mend: Fix,
    /// What [`crate::fix()`] runs, with the file's key; `None` if somebody must decide first.
    pub fix: Option<String>,
}

impl DoctorFinding {
    /// A finding of a code that is in the catalogue; no cost but what the catalogue says of the
    /// code in general.
    pub(crate) fn new(code: &'static str, what: impl Into<String>, fix: Fix) -> Self {
        let CatalogueEntry { severity, .. } =
            catalogue::entry(code).expect("checks use catalogued codes");
        Self {
            code,
            severity: *severity,
            what: what.into(),
            evidence: Vec::new(),
            fields: Map::new(),
            cost: String::new(),
            fix: fix.sql(),
            mend: fix,
        }
    }

    /// With one more line of evidence.
    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// With a fact for programs.
    pub(crate) fn field(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// With another fix.
    pub(crate) fn with_fix(mut self, mend: Fix) -> Self {
        self.fix = mend.sql();
        self.mend = mend;
        self
    }

    /// With what `fix` runs, where the fix is for a shell or a program.
    pub(crate) fn fix(mut self, sql: &str) -> Self {
        self.fix = Some(sql.to_owned());
        self
    }

    /// With what it costs on this file.
    pub(crate) fn cost(mut self, cost: impl Into<String>) -> Self {
        self.cost = cost.into();
        self
    }
}
