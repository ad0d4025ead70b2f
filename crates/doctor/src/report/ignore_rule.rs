//! Defines the rules by which a user ignores findings.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::finding::DoctorFinding;
use crate::catalogue::finding_code::FindingCode;

/// A rule that ignores findings, with the user's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The code of the finding.
    pub code: FindingCode,
    /// The table, index or column that the finding concerns; `None` for any.
    pub name: Option<String>,
    /// The reason for ignoring it.
    pub reason: String,
}

/// The details of a finding that name the object that it concerns.
const SUBJECTS: &[&str] = &[
    "column", "columns", "index", "indexes", "name", "table", "tables", "triggers", "unset", "view",
];

impl IgnoreRule {
    pub(super) fn is_meant(&self, finding: &DoctorFinding) -> bool {
        let is_name = |value: &Value| match value {
            Value::String(text) => Some(text) == self.name.as_ref(),
            Value::Array(values) => {
                values.iter().any(|value| value.as_str() == self.name.as_deref())
            }
            _ => false,
        };
        let is_of = || {
            let mut details = finding.details.iter();
            details.any(|(name, value)| SUBJECTS.contains(&name.as_str()) && is_name(value))
        };
        finding.code == self.code && (self.name.is_none() || is_of())
    }
}

/// A finding that a rule of the user ignores.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct IgnoredFinding {
    /// The finding that is ignored.
    pub finding: DoctorFinding,
    /// The user's reason for ignoring the finding.
    pub reason: String,
}
