//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.
//!
//! [`examine`] looks at a file from outside (its companions, its disk, who holds which lock), opens
//! it without touching it, and runs the checks of `checks.rs` within a budget of time. Each
//! [`DoctorFinding`] has a code of the [`catalogue()`], the evidence, the cost and the fix.
//!
//! # Invariants
//! - [`examine`] writes, creates and deletes nothing: no WAL, no journal, no time stamp but the last
//!   access. [`fix()`] changes what it was asked to change, after a copy of it.
//!   Files that nobody uses are opened on an overlay, others with the WAL's index read-only.
//! - No statement runs past the budget, and none keeps other processes waiting for long: see
//!   `opened_file.rs`.
//! - What was not looked at is said ([`DoctorReport::skipped`]).
//! - The same file gives the same findings: samples are drawn from a fixed seed.
//!
//! # Not here
//! - Flags, keys, text → `cli`. The JSON → `docs/formats/13-doctor.md`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod btree_page;
mod btree_sample;
mod catalogue;
mod check_error;
mod checks;
mod database_header;
mod error;
mod file_environment;
mod file_holders;
mod finding;
mod fix;
mod format;
mod memory;
mod opened_file;
mod opening;
mod processes;
mod record;
mod recover;
mod report;
mod schema;
mod settings;
mod sql;
mod sqlite_locks;
mod time_limit;
mod undo;
mod wal;
mod watch;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::FileEncryption;

pub use catalogue::{CatalogueEntry, catalogue, entry};
pub use error::{Error, Result};
pub use file_holders::{FileHolder, file_holders};
pub use finding::{DoctorFinding, Fix, Severity};
pub use fix::{AppliedFix, FixReport, FixSelection, fix, undo_fix};
pub use format::format_bytes as bytes_text;
pub use processes::ProcessInfo;
pub use recover::{
    LostAndFound, MissingObject, RecoverOptions, RecoverProgress, RecoverReport, RecoveredPages,
    RecoveredTable, RefusedRows, recover,
};
pub use report::{
    DoctorReport, FileSummary, IgnoreRule, IgnoredFinding, IntegrityStatus, LoadQuery,
    RejectedStatement, SkippedCheck, WorkloadSummary,
};
pub use settings::{ConnectionSettings, SETTINGS_BYTES_MAX, SettingLine};
pub use watch::{FileWatcher, WatchInterval, WatchedProcess};
pub use workload::QueryLog;

use crate::file_environment::FileEnvironment;
use crate::opened_file::OpenedFile;
use crate::report::CheckResults;
use crate::time_limit::ExaminationBudget;

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

/// What the environment says of SQLite's temporary files.
#[derive(Clone, Debug, Default)]
pub struct TempDirVariables {
    /// `SQLITE_TMPDIR`
    pub sqlite_tmpdir: Option<PathBuf>,
    /// `TMPDIR`
    pub tmpdir: Option<PathBuf>,
    /// A program told this of its own.
    pub is_told: bool,
}

/// Does this file begin as an SQLite database does? An encrypted one does not.
pub fn is_database(path: &Path) -> bool {
    let start = wal::read_prefix(path, database_header::MAGIC.len());
    start.is_some_and(|start| start == database_header::MAGIC)
}

/// Examines a file.
///
/// An error says why it could not be done at all. What is wrong with the file is a finding.
pub fn examine(
    path: &Path,
    encryption: &FileEncryption,
    options: &ExamineOptions,
) -> Result<DoctorReport> {
    let budget = ExaminationBudget::new(options.time_limit);
    let is_keyed = !matches!(encryption, FileEncryption::None);
    let settings = options.settings.as_ref();
    let told = settings.and_then(ConnectionSettings::places);
    let places = told.as_ref().unwrap_or(&options.temp_dirs);
    let mut environment = FileEnvironment::inspect(path, is_keyed, places, &budget)?;
    if settings.is_some_and(ConnectionSettings::keeps_temp_in_memory) {
        environment.temp = None;
    }
    let mut log = CheckResults::default();
    checks::run_environment_checks(&environment, &mut log);
    let about = match OpenedFile::open(environment, encryption, options, &budget, &mut log)? {
        Ok(subject) => {
            checks::run_content_checks(&subject, &mut log);
            subject.finish(&mut log)
        }
        Err(about) => {
            if settings.is_some() {
                log.add_skipped("what the program sets", "the content was not looked at");
            }
            about
        }
    };
    Ok(log.report(about, &options.ignore, budget.elapsed()))
}
