//! Defines how severe a finding is.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The finding is worth knowing, but nothing is wrong.
    Info,
    /// The problem costs time or space, or will do so one day.
    Warning,
    /// Data is lost or inaccessible, or a program has to wait.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}
