//! Defines the options of an examination.

use std::time::Duration;

use crate::environment::temp_dirs::TempDirVariables;
use crate::program::settings::ConnectionSettings;
use crate::program::workload::QueryLog;
use crate::report::ignore_rule::IgnoreRule;

/// The options of an examination.
#[derive(Clone, Debug)]
pub struct ExamineOptions {
    /// The approximate time limit of the examination.
    pub time_limit: Duration,
    /// Queries that programs run on the file: each is checked separately for a missing index.
    pub queries: Vec<String>,
    /// A program's query log, which is checked as a whole.
    pub workload: Option<QueryLog>,
    /// The findings to ignore.
    pub ignore: Vec<IgnoreRule>,
    /// The temporary directories from the environment; those in `settings` take precedence.
    pub temp_dirs: TempDirVariables,
    /// The settings that a program uses on its connections to this file.
    pub settings: Option<ConnectionSettings>,
}

impl Default for ExamineOptions {
    fn default() -> Self {
        let places = TempDirVariables::default();
        Self {
            time_limit: Duration::from_secs(10),
            queries: Vec::new(),
            workload: None,
            ignore: Vec::new(),
            temp_dirs: places,
            settings: None,
        }
    }
}
