//! Defines a setting that a report lists: an option of the benchmark, or a value that was read
//! back.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A setting of a benchmark: its name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportSetting {
    /// The name of the setting, such as `rounds` or `journal_mode`.
    pub name: String,
    /// The value of the setting, as text for people.
    pub value: String,
}

impl ReportSetting {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
