//! Defines the plan of a search for settings.

use std::path::PathBuf;
use std::time::Duration;

use crate::tune::target::TuneSource;
use crate::tune::tune_load::TuneWorkload;

/// The options of `warren tune`.
#[derive(Clone, Debug)]
pub struct TunePlan {
    /// The file to tune; without one, the workload creates one.
    pub source: Option<TuneSource>,
    /// The workload to measure.
    pub workload: TuneWorkload,
    /// The time for measuring, after the file was copied.
    pub time: Duration,
    /// Whether settings may reduce durability.
    pub allow_unsafe: bool,
    /// PRAGMAs that the person's program sets today.
    pub today: Vec<(String, String)>,
    /// The folder for the copy, on the disk that is measured.
    pub folder: PathBuf,
    /// The command line, for the report.
    pub command: String,
}
