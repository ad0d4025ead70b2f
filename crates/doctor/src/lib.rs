//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.
//!
//! [`examine`] looks at a file from outside (its companions, its disk, who holds which lock), opens
//! it without touching it, and runs the checks of `checks.rs` within a budget of time. Each
//! [`Finding`] has a code of the [`catalogue()`], the evidence, the cost and the mend.
//!
//! # Invariants
//! - [`examine`] writes, creates and deletes nothing: no WAL, no journal, no time stamp but the last
//!   access. [`fix()`] changes what it was asked to change, after a copy of it.
//!   Files that nobody uses are opened on an overlay, others with the WAL's index read-only.
//! - No statement runs past the budget, and none keeps other processes waiting for long: see
//!   `subject.rs`.
//! - What was not looked at is said ([`Report::skipped`]).
//! - The same file gives the same findings: samples are drawn from a fixed seed.
//!
//! # Not here
//! - Flags, keys, text → `cli`. The JSON → `docs/formats/13-doctor.md`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod catalogue;
mod checks;
mod clock;
mod error;
mod figure;
mod finding;
mod fix;
mod header;
mod holders;
mod locks;
mod memory;
mod opening;
mod outside;
mod page;
mod processes;
mod record;
mod recover;
mod report;
mod schema;
mod settings;
mod sql;
mod subject;
mod tree;
mod trouble;
mod undo;
mod wal;
mod watch;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::Encryption;

pub use catalogue::{Entry, catalogue, entry};
pub use error::{Error, Result};
pub use figure::bytes as bytes_text;
pub use finding::{Finding, Mend, Severity};
pub use fix::{Fix, Fixed, Wanted, fix, undo_fix};
pub use holders::{Holder, holders};
pub use processes::Process;
pub use recover::{
    LostAndFound, MissingObject, RecoverOptions, RecoverProgress, Recovered, RecoveredPages,
    RecoveredTable, RefusedRows, recover,
};
pub use report::{About, Ignore, Ignored, Integrity, Load, LoadQuery, Refused, Report, Skipped};
pub use settings::{ConnectionSettings, SETTINGS_BYTES_MAX, SettingLine};
pub use watch::{User, Watch, Watched};
pub use workload::Workload;

use crate::clock::Budget;
use crate::outside::Outside;
use crate::report::Log;
use crate::subject::Subject;

/// How to examine.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long it may take, about.
    pub budget: Duration,
    /// Queries that the file is used for: each is looked at for a missing index.
    pub queries: Vec<String>,
    /// What a program asked of the file, by its log: looked at as a whole.
    pub workload: Option<Workload>,
    /// What is to be left as it is.
    pub ignore: Vec<Ignore>,
    /// From the environment; what the settings say of it comes first.
    pub places: Places,
    /// What a program sets on its connections to this file.
    pub settings: Option<ConnectionSettings>,
}

impl Default for Options {
    fn default() -> Self {
        let places = Places::default();
        Self {
            budget: Duration::from_secs(10),
            queries: Vec::new(),
            workload: None,
            ignore: Vec::new(),
            places,
            settings: None,
        }
    }
}

/// What the environment says of SQLite's temporary files.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `SQLITE_TMPDIR`
    pub sqlite_tmpdir: Option<PathBuf>,
    /// `TMPDIR`
    pub tmpdir: Option<PathBuf>,
    /// A program told this of its own.
    pub is_told: bool,
}

/// Does this file begin as an SQLite database does? An encrypted one does not.
pub fn is_database(path: &Path) -> bool {
    let start = wal::read_start(path, header::MAGIC.len());
    start.is_some_and(|start| start == header::MAGIC)
}

/// Examines a file.
///
/// An error says why it could not be done at all. What is wrong with the file is a finding.
pub fn examine(path: &Path, encryption: &Encryption, options: &Options) -> Result<Report> {
    let budget = Budget::new(options.budget);
    let is_keyed = !matches!(encryption, Encryption::None);
    let settings = options.settings.as_ref();
    let told = settings.and_then(ConnectionSettings::places);
    let places = told.as_ref().unwrap_or(&options.places);
    let mut outside = Outside::look(path, is_keyed, places, &budget)?;
    if settings.is_some_and(ConnectionSettings::keeps_temp_in_memory) {
        outside.temp = None;
    }
    let mut log = Log::default();
    checks::outside(&outside, &mut log);
    let about = match Subject::open(outside, encryption, options, &budget, &mut log)? {
        Ok(subject) => {
            checks::content(&subject, &mut log);
            subject.finish(&mut log)
        }
        Err(about) => {
            if settings.is_some() {
                log.skip("what the program sets", "the content was not looked at");
            }
            about
        }
    };
    Ok(log.report(about, &options.ignore, budget.elapsed()))
}
