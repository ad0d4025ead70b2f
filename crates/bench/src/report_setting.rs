//! What a benchmark was told, or read back, for all of its tables.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportSetting {
    /// What was set: `rounds`, `journal_mode`.
    pub name: String,
    /// The value, as people read it.
    pub value: String,
}

impl ReportSetting {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
