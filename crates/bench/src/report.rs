//! What a benchmark says: on what it was measured, its tables, what could not be had.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::goals::GoalResult;
use crate::html_report;
use crate::machine::MachineInfo;
use crate::matrix::ReportMatrix;
use crate::sqlite_bench::EffectiveConfiguration;
use crate::suite::ResultTable;
use crate::text_report;

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchReport {
    /// `pragma`, `sync`, `tps` …
    pub benchmark: Cow<'static, str>,
    /// On what.
    pub machine: MachineInfo,
    /// The command line.
    pub command: String,
    /// Names and values, as read back.
    pub settings: Vec<(String, String)>,
    /// Sets of PRAGMAs that the tables' rows are called after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<EffectiveConfiguration>,
    /// What stands before the tables: their figures in one look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<ReportMatrix>,
    /// In the order in which they were asked for.
    pub tables: Vec<ResultTable>,
    /// What was to be shown, and whether it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aims: Vec<GoalResult>,
    /// What could not be measured here, and why; what others do for each message.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) title: Cow<'static, str>,
    /// One paragraph.
    #[serde(skip)]
    pub(crate) lead: Cow<'static, str>,
}

impl BenchReport {
    /// Its matrices alone, for the terminal; `None` if it has none.
    pub fn in_one_look(&self) -> Option<String> {
        let MachineInfo { processor, cores, file_system, version, sqlite, .. } = &self.machine;
        let matrices = text_report::matrices(&self.matrices, &self.tables);
        (!matrices.is_empty()).then(|| {
            format!(
                "{processor}, {cores} cores, {file_system}; warren {version}, SQLite {sqlite}\n\
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
            goals: &self.aims,
            notes: &self.notes,
        })
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(f, "{}\n", settings.join(", "))?;
        if !self.matrices.is_empty() {
            writeln!(f, "{}\n", text_report::matrices(&self.matrices, &self.tables))?;
        }
        if !self.configurations.is_empty() {
            writeln!(f, "{}\n", text_report::configurations(&self.configurations))?;
        }
        write!(f, "{}", text_report::text(&self.tables))?;
        write!(f, "\n{}", text_report::summary(&self.tables))?;
        if !self.aims.is_empty() {
            write!(f, "\n\n{}", text_report::aims(&self.aims))?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}
