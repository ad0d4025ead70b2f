//! How to examine a file.

use std::time::Duration;

use crate::environment::temp_dirs::TempDirVariables;
use crate::program::settings::ConnectionSettings;
use crate::program::workload::QueryLog;
use crate::report::ignore_rule::IgnoreRule;

/// How to examine.
#[derive(Clone, Debug)]
pub struct ExamineOptions {
    /// How long it may take, about.
    pub time_limit: Duration,
    /// Queries that the file is used for: each is looked at for a missing index.
    pub queries: Vec<String>,
    /// What a program asked of the file, by its log: looked at as a whole.
    pub workload: Option<QueryLog>,
    /// What is to be left as it is.
    pub ignore: Vec<IgnoreRule>,
    /// From the environment; what the settings say of it comes first.
    pub temp_dirs: TempDirVariables,
    /// What a program sets on its connections to this file.
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
