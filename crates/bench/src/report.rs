//! Defines the report of a benchmark: the machine, the tables, and notes on what could not be
//! measured.

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

/// The results of a benchmark.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BenchReport {
    /// The version number of the report format, 11.
    pub format: u32,
    /// The name of the benchmark: `pragma`, `sync`, `tps` …
    #[schema(value_type = String)]
    pub benchmark: Cow<'static, str>,
    /// The machine and the program that the benchmark ran on.
    pub machine: MachineInfo,
    /// The command line that started the benchmark.
    pub command: String,
    /// The settings that apply to all tables, as requested or as read back.
    pub settings: Vec<ReportSetting>,
    /// The sets of PRAGMAs after which the tables' rows are named; empty if none is used.
    pub configurations: Vec<EffectiveConfiguration>,
    /// Matrices that combine several tables with the same rows; empty if no tables share rows.
    pub matrices: Vec<ReportMatrix>,
    /// The measured tables, in the order in which they were requested.
    pub tables: Vec<ResultTable>,
    /// The goals, and whether each was reached; empty if the benchmark has no goals.
    pub goals: Vec<GoalResult>,
    /// Notes on cases that could not be measured, with the reasons, and on the work that
    /// competitors do for each message.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) title: Cow<'static, str>,
    /// One introductory paragraph.
    #[serde(skip)]
    pub(crate) lead: Cow<'static, str>,
}

/// The field that every version of the format has.
#[derive(Deserialize)]
struct ReportFormatNumber {
    format: Option<u32>,
}

impl BenchReport {
    /// Reads a saved report. It lacks the title and the lead, which only a page has.
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

    /// Returns the matrices alone, for the terminal; `None` if the report has none.
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

    /// Renders the report as a standalone page.
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
