//! How a search for settings is done.

use std::path::PathBuf;
use std::time::Duration;

use crate::tune::target::TuneSource;
use crate::tune::tune_load::TuneWorkload;

/// What to tune, and how.
#[derive(Clone, Debug)]
pub struct TunePlan {
    /// The file; without one, the workload makes one.
    pub source: Option<TuneSource>,
    /// What is done.
    pub workload: TuneWorkload,
    /// For measuring; making the copy comes before it.
    pub time: Duration,
    /// Whether durability may be given up for speed.
    pub allow_unsafe: bool,
    /// PRAGMAs that the person's program sets today.
    pub today: Vec<(String, String)>,
    /// Where the copy goes: the disk that is measured.
    pub folder: PathBuf,
    /// The command line, for the report.
    pub command: String,
}
