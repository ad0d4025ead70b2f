//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.
//!
//! [`examine`] looks at a file from outside (its companions, its disk, who holds which lock), opens
//! it without touching it, and runs the checks of `checks.rs` within a budget of time. Each
//! [`Finding`] has a code of the [`catalogue()`], the evidence, the cost and the mend.
//!
//! # Invariants
//! - Nothing is written, created or deleted: no WAL, no journal, no time stamp but the last access.
//!   Files that nobody uses are opened as immutable, others with the WAL's index read-only.
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
mod header;
mod holders;
mod locks;
mod outside;
mod page;
mod processes;
mod record;
mod report;
mod schema;
mod subject;
mod tree;
mod wal;

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::Encryption;

pub use catalogue::{Entry, catalogue, entry};
pub use error::{Error, Result};
pub use figure::bytes as bytes_text;
pub use finding::{Finding, Mend, Severity};
pub use holders::{Holder, holders};
pub use processes::Process;
pub use report::{About, Report, Skipped};

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
    /// From the environment.
    pub places: Places,
}

impl Default for Options {
    fn default() -> Self {
        let places = Places::default();
        Self { budget: Duration::from_secs(10), queries: Vec::new(), places }
    }
}

/// What the environment says of SQLite's temporary files.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `SQLITE_TMPDIR`
    pub sqlite_tmpdir: Option<PathBuf>,
    /// `TMPDIR`
    pub tmpdir: Option<PathBuf>,
}

/// Examines a file.
///
/// An error says why it could not be done at all. What is wrong with the file is a finding.
pub fn examine(path: &Path, encryption: &Encryption, options: &Options) -> Result<Report> {
    let budget = Budget::new(options.budget);
    let outside = Outside::look(path, &options.places, &budget)?;
    let mut log = Log::default();
    checks::outside(&outside, &mut log);
    let about = match Subject::open(outside, encryption, options, &budget, &mut log)? {
        Ok(subject) => {
            checks::content(&subject, &mut log);
            subject.finish(&mut log)
        }
        Err(about) => about,
    };
    Ok(log.report(about, budget.elapsed()))
}
