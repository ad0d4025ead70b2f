//! The `doctor` crate implements `warren doctor`: it finds problems and slow spots of an SQLite
//! file, and suggests fixes.
//!
//! [`examine`] inspects a file from outside (its companions, its disk, the processes that hold
//! locks), opens it without changing it, and runs the checks of `checks.rs` within a time limit.
//! Each [`DoctorFinding`] has a code of the [`catalogue()`], the evidence, the impact and the fix.
//!
//! # Invariants
//! - [`examine`] writes, creates and deletes nothing: no WAL, no journal, and no timestamp except
//!   the last access. [`fix()`] changes only what was requested, after copying the file. Files that
//!   are not in use are opened on an overlay, others with the WAL's index read-only.
//! - No statement runs past the time limit, and none makes other processes wait for long: see
//!   `file/opened_file.rs`.
//! - Everything that was not checked is reported ([`DoctorReport::skipped`]).
//! - The same file gives the same findings: samples are drawn with a fixed seed.
//!
//! # Not here
//! - Flags, keys, text → `cli`. The JSON → `docs/reference/formats/13-doctor.md`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod catalogue;
mod checks;
mod environment;
mod error;
mod file;
mod fix;
mod format;
mod options;
mod program;
mod recover;
mod report;
mod time_limit;

use std::path::Path;

pub use catalogue::catalogue;
pub use catalogue::entry::CatalogueEntry;
pub use catalogue::finding_code::FindingCode;
use engine::FileEncryption;
pub use environment::file_holders::{FileHolder, file_holders};
pub use environment::processes::ProcessInfo;
pub use environment::temp_dirs::TempDirVariables;
pub use environment::watch::{FileWatcher, WatchInterval, WatchedProcess};
pub use error::{Error, Result};
pub use fix::{AppliedFix, FixReport, FixSelection, fix, undo_fix};
pub use format::counted;
pub use options::ExamineOptions;
pub use program::settings::{ConnectionSettings, SETTINGS_BYTES_MAX, SettingLine};
pub use program::workload::QueryLog;
pub use recover::{
    LostAndFound, MissingObject, RecoverOptions, RecoverProgress, RecoverReport, RecoveredPages,
    RecoveredTable, RejectedRows, recover,
};
pub use report::file_summary::{FileOpenMode, FileSummary, JournalKind};
pub use report::finding::{DoctorFinding, Fix};
pub use report::history_trend::{HistoryFigures, HistoryTrend};
pub use report::ignore_rule::{IgnoreRule, IgnoredFinding};
pub use report::severity::Severity;
pub use report::workload_summary::{RejectedStatement, WorkloadQuery, WorkloadSummary};
pub use report::{DoctorReport, IntegrityStatus, SkippedCheck};

use crate::environment::file_environment::FileEnvironment;
use crate::file::opened_file::OpenedFile;
use crate::report::CheckResults;
use crate::time_limit::ExaminationBudget;

/// Checks whether this file begins like an SQLite database. An encrypted one does not.
pub fn is_database(path: &Path) -> bool {
    let start = environment::wal::read_prefix(path, file::database_header::MAGIC.len());
    start.is_some_and(|start| start == file::database_header::MAGIC)
}

/// Examines a file.
///
/// An error describes why the file could not be examined at all. A problem in the file is a
/// finding.
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
    let file = match OpenedFile::open(environment, encryption, options, &budget, &mut log)? {
        Ok(subject) => {
            checks::run_content_checks(&subject, &mut log);
            subject.finish(&mut log)
        }
        Err(file) => {
            if settings.is_some() {
                log.add_skipped("program settings", "the content was not checked");
            }
            file
        }
    };
    Ok(log.report(file, &options.ignore, budget.elapsed()))
}
