//! What a benchmark says: on what it was measured, its tables, what could not be had.

use std::borrow::Cow;
use std::fmt;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::goals::GoalResult;
use crate::html_report;
use crate::machine::MachineInfo;
use crate::matrix::ReportMatrix;
use crate::report_setting::ReportSetting;
use crate::sqlite_bench::EffectiveConfiguration;
use crate::suite::ResultTable;
use crate::text_report;

/// The number of the format (`docs/reference/formats/11-benchmark-report.md`).
pub(crate) const REPORT_FORMAT: u32 = 11;

/// What a benchmark has measured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BenchReport {
    /// The number of this format, 11.
    pub format: u32,
    /// The name of the benchmark: `pragma`, `sync`, `tps` …
    #[schema(value_type = String)]
    pub benchmark: Cow<'static, str>,
    /// The machine and the program that it ran on.
    pub machine: MachineInfo,
    /// The command line.
    pub command: String,
    /// What the benchmark was told, or read back, for all of its tables.
    pub settings: Vec<ReportSetting>,
    /// Sets of PRAGMAs that the tables' rows are called after; empty where there are none.
    pub configurations: Vec<EffectiveConfiguration>,
    /// What several tables say of the same rows; empty where there is no such table.
    pub matrices: Vec<ReportMatrix>,
    /// The measured tables, in the order in which they were asked for.
    pub tables: Vec<ResultTable>,
    /// What was to be shown, and whether it was; empty where nothing was.
    pub goals: Vec<GoalResult>,
    /// What could not be measured here, and why; what others do for each message.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) title: Cow<'static, str>,
    /// One paragraph.
    #[serde(skip)]
    pub(crate) lead: Cow<'static, str>,
}

/// What every version of the format has.
#[derive(Deserialize)]
struct ReportFormatNumber {
    format: Option<u32>,
}

impl BenchReport {
    /// A report that was saved. Title and lead, which only a page has, are not in it.
    pub fn from_json(text: &str) -> anyhow::Result<Self> {
        let ReportFormatNumber { format } = serde_json::from_str(text)?;
        let format = format.with_context(|| {
            format!(
                "it has no format number; this version of Warren reads only format {REPORT_FORMAT}"
            )
        })?;
        ensure!(
            format == REPORT_FORMAT,
            "it has format {format}; this version of Warren reads only format {REPORT_FORMAT}"
        );
        Ok(serde_json::from_str(text)?)
    }

    /// Its matrices alone, for the terminal; `None` if it has none.
    pub fn in_one_look(&self) -> Option<String> {
        let MachineInfo { processor, cores_count, file_system, version, sqlite, .. } =
            &self.machine;
        let matrices = text_report::matrices(&self.matrices, &self.tables);
        (!matrices.is_empty()).then(|| {
            format!(
                "{processor}, {cores_count} cores, {file_system}; warren {version}, \
                 SQLite {sqlite}\n\
                 {matrices}"
            )
        })
    }

    /// As a page of its own.
    pub fn html(&self) -> String {
        html_report::render(&html_report::HtmlPage {
            title: &self.title,
            lead: &self.lead,
            machine: &self.machine,
            command: &self.command,
            settings: &self.settings,
            configurations: &self.configurations,
            matrices: &self.matrices,
            tables: &self.tables,
            goals: &self.goals,
            notes: &self.notes,
        })
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let settings: Vec<String> =
            self.settings.iter().map(|one| format!("{} {}", one.name, one.value)).collect();
        writeln!(f, "{}\n", settings.join(", "))?;
        if !self.matrices.is_empty() {
            writeln!(f, "{}\n", text_report::matrices(&self.matrices, &self.tables))?;
        }
        if !self.configurations.is_empty() {
            writeln!(f, "{}\n", text_report::configurations(&self.configurations))?;
        }
        write!(f, "{}", text_report::text(&self.tables))?;
        write!(f, "\n{}", text_report::summary(&self.tables))?;
        if !self.goals.is_empty() {
            write!(f, "\n\n{}", text_report::goals(&self.goals))?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_another_format_is_refused() {
        let check = |text: &str, expected: &str| {
            let refused = BenchReport::from_json(text).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("it has {expected}; this version of Warren reads only format 11")
            );
        };
        check(r#"{"benchmark": "pragma", "aims": []}"#, "no format number");
        check(r#"{"format": 10, "benchmark": "pragma"}"#, "format 10");
        check(r#"{"format": 12, "parts": {}}"#, "format 12");
        assert!(BenchReport::from_json(r#"{"format": 11}"#).is_err(), "the rest is missing");
    }
}
