//! Defines the findings that rules report.

use std::fmt;

/// A broken rule: its place, its name, and a better alternative.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    advice: String,
}

impl TidyFinding {
    pub(crate) fn new(
        path: &str,
        line: usize,
        rule: &'static str,
        instead: impl Into<String>,
    ) -> TidyFinding {
        TidyFinding { path: path.to_owned(), line, rule, advice: instead.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}
