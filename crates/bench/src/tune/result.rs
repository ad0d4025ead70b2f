//! What tune found, as data (`docs/formats/14-tune.md`).
//!
//! # Invariants
//! - Nothing is recommended for its speed but what was found faster alone or with the others, and again
//!   when all of it was measured once more.
//!
//! # Not here
//! - How it reads in the terminal → `result/text.rs`.

mod text;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::Plan;
use super::candidate::{CANDIDATES, CONVERTED_BYTES_MAX, cache_bytes};
use super::emit::Recipe;
use super::load::Workload;
use super::search::{Measured, Search, Trial, gains};
use super::settings::{Safety, Settings, is_of_file};
use super::subject::Subject;
use crate::interval::{Difference, Verdict};
use crate::machine::Machine;
use crate::measure::Spread;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Tuning {
    /// On what it was measured.
    pub machine: Machine,
    /// The command line.
    pub command: String,
    /// The person's file; none if the workload made one.
    pub file: Option<FileAbout>,
    /// What was done.
    pub workload: Workload,
    /// With which tables.
    pub load: Vec<String>,
    /// What was left out or not tried, and why; what to beware of.
    pub notes: Vec<String>,
    /// What a connection gets today, in the order in which it is set.
    pub today: Vec<(String, String)>,
    /// Today's settings once more, compared with themselves: what chance does.
    pub noise: Vec<Comparison>,
    /// Every setting that was tried.
    pub tried: Vec<Tried>,
    /// In the order in which they are set.
    pub recommended: Vec<Recommendation>,
    /// All of what is recommended, compared with today.
    pub together: Option<Vec<Comparison>>,
}

/// The person's file.
#[derive(Clone, Debug, Serialize)]
pub struct FileAbout {
    /// As it was given.
    pub path: String,
    /// The copy's, which has no free pages.
    pub bytes: u64,
    /// How long the copy took.
    pub copy_seconds: f64,
    /// If it is encrypted.
    pub cipher: Option<String>,
}

/// One phase of the load under two sets of settings.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `mix`, `reads`, `writes`.
    pub phase: String,
    /// Operations a second.
    pub rate: Spread,
    /// Divided by that of the other set in the same round.
    pub ratio: Spread,
    /// What that says.
    pub difference: Difference,
}

/// A setting that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The PRAGMA.
    pub pragma: &'static str,
    /// Its value.
    pub value: &'static str,
    /// What a power loss may do with it.
    pub safety: Safety,
    /// What it costs otherwise.
    pub cost: &'static str,
    /// Memory of each connection, at most.
    pub memory_bytes: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// What it was compared with, beyond today's settings: nothing, or what was chosen before it,
    /// if it applies only with that.
    pub beside: Vec<(String, String)>,
    /// In the order of the phases.
    pub comparisons: Vec<Comparison>,
    /// What it added to what was chosen before it.
    pub added: Option<Vec<Comparison>>,
}

/// What came of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is recommended.
    Chosen,
    /// It gains, but would cost durability, and that was not allowed.
    NeedsPermission,
    /// It does not differ beyond the noise.
    NoDifference,
    /// It gains alone, but nothing beyond what was chosen.
    NotBeyond,
    /// It makes something slower.
    Slower,
    /// There was no time for a verdict.
    TooFewRounds,
}

/// A PRAGMA to set.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The PRAGMA.
    pub pragma: String,
    /// Its value.
    pub value: String,
    /// Why.
    pub reason: Reason,
    /// Whether SQLite does the same without it.
    pub is_default: bool,
    /// Whether it is one of the file, taken by VACUUM.
    pub is_once: bool,
}

/// Why a PRAGMA is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is faster.
    Faster,
    /// It is what it is today, said because a library may have another default.
    AsToday,
    /// Not for speed.
    Hygiene,
}

/// What waits for a lock instead of failing at once: longer than a transaction should take, shorter
/// than a person waits.
const BUSY_TIMEOUT: &str = "5000";
/// A WAL that a long reader made large is cut to this at the next checkpoint.
const WAL_SIZE: &str = "67108864";

impl Tuning {
    pub(super) fn of(
        plan: &Plan,
        subject: &Subject,
        found: &Search,
        machine: Machine,
    ) -> anyhow::Result<Self> {
        let mut notes = subject.load.notes.clone();
        notes.extend(beware(plan, subject));
        if found.noise.iter().any(|one| one.difference.verdict != Verdict::NoDifference) {
            notes.push(
                "the machine is too restless, or there was no time: even the same settings differ \
                 from themselves"
                    .to_owned(),
            );
        }
        if found.is_cut {
            notes.push("there was no time to look for more that gains: --minutes".to_owned());
        }
        let holds = found.together.as_ref().is_some_and(|together| gains(together));
        if found.together.is_some() && !holds {
            notes.push(
                "what gained at first did not gain when it was measured once more".to_owned(),
            );
        }
        let file = plan.source.as_ref().map(|source| FileAbout {
            path: source.path.display().to_string(),
            bytes: subject.bytes,
            copy_seconds: subject.copied_in.unwrap_or_default().as_secs_f64(),
            cipher: subject.encryption.as_ref().map(|(cipher, _)| cipher.clone()),
        });
        let set = if holds { &found.settings } else { &subject.today };
        Ok(Self {
            machine,
            command: plan.command.clone(),
            file,
            workload: plan.workload,
            load: subject.load.about.clone(),
            notes,
            today: subject.today.pairs().to_vec(),
            noise: comparisons(&found.noise),
            tried: tried(found, holds),
            recommended: recommended(subject, set)?,
            together: found.together.as_deref().filter(|_| holds).map(comparisons),
        })
    }

    /// What to set, to be written as code.
    pub fn recipe(&self) -> Recipe {
        let pair = |one: &Recommendation| (one.pragma.clone(), one.value.clone());
        let (once, always): (Vec<_>, Vec<_>) = self.recommended.iter().partition(|one| one.is_once);
        Recipe {
            settings: always.into_iter().map(pair).collect(),
            once: once.into_iter().map(pair).collect(),
        }
    }
}

fn comparisons(measured: &[Measured]) -> Vec<Comparison> {
    let of = measured.iter().map(|one| Comparison {
        phase: one.name.clone(),
        rate: one.rate.clone(),
        ratio: one.ratio.clone(),
        difference: one.difference.clone(),
    });
    of.collect()
}

/// In the order of the table of candidates.
fn tried(found: &Search, holds: bool) -> Vec<Tried> {
    let all = CANDIDATES.iter().filter_map(|candidate| {
        let find =
            |trials: &[Trial]| trials.iter().find(|trial| trial.candidate == candidate).cloned();
        let chosen = find(&found.chosen).filter(|_| holds);
        let refused = find(&found.refused);
        let alone = find(&found.alone);
        let first = alone.clone().or(find(&found.chosen)).or(find(&found.passed));
        let trial = first.or(refused.clone())?;
        let outcome = match () {
            () if chosen.is_some() => Outcome::Chosen,
            () if refused.is_some() && gains(&trial.measured) => Outcome::NeedsPermission,
            () => outcome(&trial, holds),
        };
        Some(Tried {
            pragma: candidate.pragma,
            value: candidate.value,
            safety: trial.safety,
            cost: candidate.cost,
            memory_bytes: candidate.memory_bytes,
            outcome,
            beside: trial.beside.clone(),
            comparisons: comparisons(&trial.measured),
            added: chosen.map(|trial| comparisons(&trial.measured)),
        })
    });
    all.collect()
}

fn outcome(trial: &Trial, holds: bool) -> Outcome {
    let is = |verdict| trial.measured.iter().any(|one| one.difference.verdict == verdict);
    match () {
        () if is(Verdict::TooFewRounds) => Outcome::TooFewRounds,
        () if is(Verdict::Slower) => Outcome::Slower,
        () if is(Verdict::Faster) && holds => Outcome::NotBeyond,
        () => Outcome::NoDifference,
    }
}

fn recommended(subject: &Subject, set: &Settings) -> anyhow::Result<Vec<Recommendation>> {
    let mut all: Vec<(String, String, Reason)> = set
        .beyond(&subject.today)
        .into_iter()
        .map(|(pragma, value)| (pragma, value, Reason::Faster))
        .collect();
    let mut also = |pragma: &str, value: &str, reason| {
        if all.iter().all(|(of, ..)| of != pragma) {
            all.push((pragma.to_owned(), value.to_owned(), reason));
        }
    };
    match set.get("busy_timeout") {
        "0" => also("busy_timeout", BUSY_TIMEOUT, Reason::Hygiene),
        waits => also("busy_timeout", waits, Reason::AsToday),
    }
    if subject.declares_references()? {
        also("foreign_keys", "ON", Reason::Hygiene);
    }
    if set.is_wal() {
        also("journal_mode", "WAL", Reason::AsToday);
        also("synchronous", set.get("synchronous"), Reason::AsToday);
        also("journal_size_limit", WAL_SIZE, Reason::Hygiene);
    }
    if subject.encryption.is_some() {
        // Of SQLite3 Multiple Ciphers before 2.6, temporary files are plaintext.
        also("temp_store", "MEMORY", Reason::Hygiene);
    }
    let defaults = defaults(set, subject.folder())?;
    let ordered = all
        .iter()
        .fold(Settings::default(), |settings, (pragma, value, _)| settings.with(pragma, value));
    let reason = |pragma: &str| all.iter().find(|(of, ..)| of == pragma).map(|one| one.2);
    let recommended = ordered.pairs().iter().filter_map(|(pragma, value)| {
        Some(Recommendation {
            pragma: pragma.clone(),
            value: value.clone(),
            reason: reason(pragma)?,
            is_default: pragma != "journal_mode" && defaults.get(pragma) == value,
            is_once: is_of_file(pragma),
        })
    });
    Ok(recommended.collect())
}

/// Of a new file with the same journal, which the default of `synchronous` depends on in some
/// builds. rusqlite sets a busy timeout, SQLite has none.
fn defaults(set: &Settings, folder: &Path) -> anyhow::Result<Settings> {
    let scratch = tempfile::tempdir_in(folder)?;
    let db = Connection::open(scratch.path().join("new.sqlite"))?;
    db.busy_timeout(std::time::Duration::ZERO)?;
    db.execute_batch(&format!("PRAGMA journal_mode = {}", set.get("journal_mode")))?;
    Settings::read(&db)
}

/// What the measurements do not show.
fn beware(plan: &Plan, subject: &Subject) -> Vec<String> {
    let mut notes = Vec::new();
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    if let Some(source) = &plan.source {
        if device(&source.path) != device(&plan.folder) {
            notes.push(
                "the copy was on another disk than the file: --folder says where to measure"
                    .to_owned(),
            );
        }
        if subject.bytes > CONVERTED_BYTES_MAX {
            notes.push("page sizes were not tried: the file is larger than 1 GiB".to_owned());
        }
    }
    if subject.encryption.is_some() {
        notes
            .push("encrypted: neither mmap_size, without effect, nor page sizes were tried".into());
    }
    let cache = cache_bytes(subject.today.get("cache_size"), subject.today.get("page_size"));
    if subject.bytes <= cache {
        notes.push("larger caches were not tried: today's holds the whole file".to_owned());
    }
    notes
}
