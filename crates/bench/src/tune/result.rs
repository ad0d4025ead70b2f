//! Defines the result of `warren tune` as data (`docs/reference/formats/14-tune.md`).
//!
//! # Invariants
//! - A setting is recommended for its speed only if it was faster alone or with the others, and if
//!   all recommended settings were faster together when measured again.
//!
//! # Not here
//! - Text for the terminal → `result/text.rs`.

mod text;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::candidate::{CANDIDATES, CONVERTED_BYTES_MAX, cache_bytes};
use super::emit::recipe::PragmaRecipe;
use super::plan::TunePlan;
use super::search::{PhaseMeasurement, TuneSearchResult, TuneTrial, gains};
use super::settings::{PowerLossSafety, PragmaSettings, PragmaValue, is_of_file};
use super::target::TuneTarget;
use super::tune_load::TuneWorkload;
use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::machine::MachineInfo;
use crate::measure::Distribution;

/// The results of `warren tune`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TuneReport {
    /// The machine and the program of the measurements.
    pub machine: MachineInfo,
    /// The command line that started `warren tune`.
    pub command: String,
    /// The user's file; null if the workload created its own file.
    pub file: Option<TunedFile>,
    /// The workload that was measured.
    pub workload: TuneWorkload,
    /// Descriptions of the operations on each table, one text for each table.
    pub workload_tables: Vec<String>,
    /// Notes on operations and settings that were not tried, with the reasons, and warnings.
    pub notes: Vec<String>,
    /// The current settings of a connection, in the order in which they are set.
    pub current_settings: Vec<PragmaValue>,
    /// The current settings compared with a second measurement of them, which shows the noise.
    pub noise: Vec<PhaseComparison>,
    /// Every setting that was tried.
    pub trials: Vec<TriedSetting>,
    /// The recommended settings, in the order in which to set them.
    pub recommended: Vec<SettingRecommendation>,
    /// All recommended settings compared with the current ones; null if there is no gain.
    pub combined: Option<Vec<PhaseComparison>>,
}

/// The user's file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TunedFile {
    /// The path of the file, as it was given.
    pub path: String,
    /// The size of the measured copy, in bytes; the copy has no free pages.
    pub file_bytes: u64,
    /// The time that copying the file took, in milliseconds.
    pub copy_duration_ms: u64,
    /// The cipher of the file; null if the file is not encrypted.
    pub cipher: Option<String>,
}

/// One phase of the workload under two sets of settings.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PhaseComparison {
    /// The name of the phase: `mix`, `reads` or `writes`.
    pub phase: String,
    /// The rate, in operations per second.
    pub rate: Distribution,
    /// The rate divided by the rate of the other set of settings in the same round.
    pub ratio: Distribution,
    /// The difference that the ratio shows.
    pub difference: MedianDifference,
}

/// A setting that was tried.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TriedSetting {
    /// The name of the PRAGMA.
    pub pragma: &'static str,
    /// The value of the PRAGMA.
    pub value: &'static str,
    /// The worst effect of a power loss with all settings of the trial, including this one.
    pub safety: PowerLossSafety,
    /// Other costs of the setting, as text for people; empty if there are none.
    pub impact: &'static str,
    /// The most additional memory that each connection may use, in bytes.
    pub memory_bytes: u64,
    /// The outcome of the trial.
    pub outcome: TrialOutcome,
    /// The settings beyond the current ones in the set that the trial was compared with: none if
    /// the setting was tried alone, otherwise the settings that were chosen before the trial.
    pub on_top_of: Vec<PragmaValue>,
    /// The comparisons of the trial, in the order of the phases.
    pub comparisons: Vec<PhaseComparison>,
    /// The comparisons with the set of settings that this one was added to; null if it was not
    /// chosen.
    pub added_gain: Option<Vec<PhaseComparison>>,
}

/// The outcome of a trial of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// The setting is recommended.
    Chosen,
    /// The setting is faster, but reduces durability, which was not allowed.
    NeedsPermission,
    /// The setting makes no difference beyond the noise.
    NoDifference,
    /// The setting is faster alone, but adds no gain to the chosen settings.
    NoAdditionalGain,
    /// The setting makes at least one phase slower.
    Slower,
    /// The time allowed too few rounds for a verdict.
    TooFewRounds,
}

/// A recommended PRAGMA with its value.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SettingRecommendation {
    /// The name of the PRAGMA.
    pub pragma: String,
    /// The value of the PRAGMA.
    pub value: String,
    /// The reason for the recommendation.
    pub reason: RecommendationReason,
    /// Whether the value is SQLite's default; always false for `journal_mode`.
    pub default: bool,
    /// Whether the file stores the setting and needs VACUUM to adopt it.
    pub file_setting: bool,
}

/// The reason for the recommendation of a PRAGMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecommendationReason {
    /// The value is faster than the current one.
    Faster,
    /// The value is the current one; it is listed because a library may have another default.
    Unchanged,
    /// The value is recommended for another reason than speed.
    Hygiene,
}

/// The milliseconds that a statement waits for a lock instead of failing at once: longer than a
/// transaction should take, shorter than a person waits.
const BUSY_TIMEOUT: &str = "5000";
/// The size to which the next checkpoint truncates a WAL that a long reader made large.
const WAL_SIZE: &str = "67108864";

impl TuneReport {
    pub(super) fn of(
        plan: &TunePlan,
        subject: &TuneTarget,
        found: &TuneSearchResult,
        machine: MachineInfo,
    ) -> anyhow::Result<Self> {
        let mut notes = subject.load.notes.clone();
        notes.extend(beware(plan, subject));
        if found.noise.iter().any(|one| one.difference.verdict != DifferenceVerdict::NoDifference) {
            notes.push(
                "unreliable: two measurements of the current settings were not found equal; the \
                 machine is too busy, or the time was too short (--minutes)"
                    .to_owned(),
            );
        }
        if found.is_cut {
            notes.push("there was no time to search for further gains (--minutes)".to_owned());
        }
        let holds = found.combined.as_ref().is_some_and(|combined| gains(combined));
        if found.combined.is_some() && !holds {
            notes.push(
                "settings that were faster at first were not faster when measured again".to_owned(),
            );
        }
        let file = plan.source.as_ref().map(|source| TunedFile {
            path: source.path.display().to_string(),
            file_bytes: subject.bytes,
            copy_duration_ms: whole_ms(subject.copied_in.unwrap_or_default()),
            cipher: subject.encryption.as_ref().map(|(cipher, _)| cipher.clone()),
        });
        let set = if holds { &found.settings } else { &subject.today };
        Ok(Self {
            machine,
            command: plan.command.clone(),
            file,
            workload: plan.workload,
            workload_tables: subject.load.workload_tables.clone(),
            notes,
            current_settings: PragmaValue::list(subject.today.pairs()),
            noise: comparisons(&found.noise),
            trials: trials(found, holds),
            recommended: recommended(subject, set)?,
            combined: found.combined.as_deref().filter(|_| holds).map(comparisons),
        })
    }

    /// Returns the recommended settings, to be written as code.
    pub fn recipe(&self) -> PragmaRecipe {
        let pair = |one: &SettingRecommendation| (one.pragma.clone(), one.value.clone());
        let (of_file, of_connection): (Vec<_>, Vec<_>) =
            self.recommended.iter().partition(|one| one.file_setting);
        PragmaRecipe {
            connection_settings: of_connection.into_iter().map(pair).collect(),
            file_settings: of_file.into_iter().map(pair).collect(),
        }
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn comparisons(measured: &[PhaseMeasurement]) -> Vec<PhaseComparison> {
    let of = measured.iter().map(|one| PhaseComparison {
        phase: one.name.clone(),
        rate: one.rate.clone(),
        ratio: one.ratio.clone(),
        difference: one.difference.clone(),
    });
    of.collect()
}

/// Returns the trials in the order of the table of candidates.
fn trials(found: &TuneSearchResult, holds: bool) -> Vec<TriedSetting> {
    let all = CANDIDATES.iter().filter_map(|candidate| {
        let find = |trials: &[TuneTrial]| {
            trials.iter().find(|trial| trial.candidate == candidate).cloned()
        };
        let chosen = find(&found.chosen).filter(|_| holds);
        let refused = find(&found.refused);
        let alone = find(&found.alone);
        let first = alone.clone().or(find(&found.chosen)).or(find(&found.passed));
        let trial = first.or(refused.clone())?;
        let outcome = match () {
            () if chosen.is_some() => TrialOutcome::Chosen,
            () if refused.is_some() && gains(&trial.measured) => TrialOutcome::NeedsPermission,
            () => outcome(&trial, holds),
        };
        Some(TriedSetting {
            pragma: candidate.pragma,
            value: candidate.value,
            safety: trial.safety,
            impact: candidate.impact,
            memory_bytes: candidate.memory_bytes,
            outcome,
            on_top_of: PragmaValue::list(&trial.on_top_of),
            comparisons: comparisons(&trial.measured),
            added_gain: chosen.map(|trial| comparisons(&trial.measured)),
        })
    });
    all.collect()
}

fn outcome(trial: &TuneTrial, holds: bool) -> TrialOutcome {
    let is = |verdict| trial.measured.iter().any(|one| one.difference.verdict == verdict);
    match () {
        () if is(DifferenceVerdict::TooFewRounds) => TrialOutcome::TooFewRounds,
        () if is(DifferenceVerdict::Slower) => TrialOutcome::Slower,
        () if is(DifferenceVerdict::Faster) && holds => TrialOutcome::NoAdditionalGain,
        () => TrialOutcome::NoDifference,
    }
}

fn recommended(
    subject: &TuneTarget,
    set: &PragmaSettings,
) -> anyhow::Result<Vec<SettingRecommendation>> {
    let mut all: Vec<(String, String, RecommendationReason)> = set
        .beyond(&subject.today)
        .into_iter()
        .map(|(pragma, value)| (pragma, value, RecommendationReason::Faster))
        .collect();
    let mut also = |pragma: &str, value: &str, reason| {
        if all.iter().all(|(of, ..)| of != pragma) {
            all.push((pragma.to_owned(), value.to_owned(), reason));
        }
    };
    match set.get("busy_timeout") {
        "0" => also("busy_timeout", BUSY_TIMEOUT, RecommendationReason::Hygiene),
        waits => also("busy_timeout", waits, RecommendationReason::Unchanged),
    }
    if subject.declares_references()? {
        also("foreign_keys", "ON", RecommendationReason::Hygiene);
    }
    if set.is_wal() {
        also("journal_mode", "WAL", RecommendationReason::Unchanged);
        also("synchronous", set.get("synchronous"), RecommendationReason::Unchanged);
        also("journal_size_limit", WAL_SIZE, RecommendationReason::Hygiene);
    }
    if subject.encryption.is_some() {
        // SQLite3 Multiple Ciphers before 2.6 writes plaintext temporary files.
        also("temp_store", "MEMORY", RecommendationReason::Hygiene);
    }
    let defaults = defaults(set, subject.folder())?;
    let ordered = all.iter().fold(PragmaSettings::default(), |settings, (pragma, value, _)| {
        settings.with(pragma, value)
    });
    let reason = |pragma: &str| all.iter().find(|(of, ..)| of == pragma).map(|one| one.2);
    let recommended = ordered.pairs().iter().filter_map(|(pragma, value)| {
        Some(SettingRecommendation {
            pragma: pragma.clone(),
            value: value.clone(),
            reason: reason(pragma)?,
            default: pragma != "journal_mode" && defaults.get(pragma) == value,
            file_setting: is_of_file(pragma),
        })
    });
    Ok(recommended.collect())
}

/// Returns the settings of a new file with the same journal mode, on which the default of
/// `synchronous` depends in some builds. rusqlite sets a busy timeout, SQLite has none.
fn defaults(set: &PragmaSettings, folder: &Path) -> anyhow::Result<PragmaSettings> {
    let scratch = tempfile::tempdir_in(folder)?;
    let db = Connection::open(scratch.path().join("new.sqlite"))?;
    db.busy_timeout(Duration::ZERO)?;
    db.execute_batch(&format!("PRAGMA journal_mode = {}", set.get("journal_mode")))?;
    PragmaSettings::read(&db)
}

/// Returns notes on limits that the measurements do not show.
fn beware(plan: &TunePlan, subject: &TuneTarget) -> Vec<String> {
    let mut notes = Vec::new();
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    if let Some(source) = &plan.source {
        if device(&source.path) != device(&plan.folder) {
            notes.push(
                "the copy was on a different disk than the file; choose the disk with --work-dir"
                    .to_owned(),
            );
        }
        if subject.bytes > CONVERTED_BYTES_MAX {
            notes.push("page sizes were not tried: the file is larger than 1 GiB".to_owned());
        }
    }
    if subject.encryption.is_some() {
        notes.push("encrypted: mmap_size (no effect) and page sizes were not tried".into());
    }
    let cache = cache_bytes(subject.today.get("cache_size"), subject.today.get("page_size"));
    if subject.bytes <= cache {
        notes.push(
            "larger caches were not tried: the whole file fits in the current cache".to_owned(),
        );
    }
    notes
}
