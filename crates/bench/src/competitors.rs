//! Finds the competitors that Warren is compared with: programs in `bench/competitors`, built or
//! installed when they are first needed (`docs/reference/formats/7-competitor-drivers.md`,
//! `docs/reference/formats/12-lab-plan.md`).
//!
//! # Invariants
//! - A competitor that cannot run on this machine is absent, with the reason; it has no figures.

pub(crate) mod process;
pub(crate) mod server;
pub(crate) mod setup;
pub(crate) mod shipped;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use indicatif::ProgressBar;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use self::process::{DriverProgram, ProgramOutput};
use self::setup::CompetitorKind;
use self::setup::steps::{MissingPolicy, NotBuilt};

/// Returns the folder for all files that come from building or installing a competitor:
/// `target/competitors` of the repository that has the folder `bench/competitors`.
pub(crate) fn target(competitors: &Path) -> PathBuf {
    competitors.join("../../target/competitors")
}

/// The competitors of one kind that were found.
#[derive(Debug)]
pub(crate) struct CompetitorSearch<T> {
    pub(crate) present: Vec<T>,
    pub(crate) absent: Vec<UnavailableCompetitor>,
    /// Names of the absent competitors that are only not built yet.
    pub(crate) unbuilt: Vec<String>,
}

/// A competitor that cannot be measured on this machine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UnavailableCompetitor {
    /// The name of the competitor and of its folder.
    pub(crate) name: String,
    /// The reason that it cannot be measured, as text for people.
    pub(crate) reason: String,
}

impl UnavailableCompetitor {
    /// Returns a line for the notes of a report.
    pub(crate) fn note(&self) -> String {
        format!("absent: {} ({})", self.name, self.reason)
    }
}

/// The competitors to search for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompetitorFilter<'a> {
    pub(crate) kind: CompetitorKind,
    /// Names of the competitors, or `None` for all of the kind.
    pub(crate) names: Option<&'a [&'a str]>,
    pub(crate) missing: MissingPolicy,
}

/// Builds or installs the programs in the folder `competitors`, unless that is already done, and
/// starts them. All output goes into `target`; the folder `competitors` does not change.
pub(crate) fn find<T>(
    wanted: CompetitorFilter<'_>,
    competitors: &Path,
    target: &Path,
    bar: &ProgressBar,
    start: impl Fn(DriverProgram) -> anyhow::Result<T>,
) -> CompetitorSearch<T> {
    let mut found =
        CompetitorSearch { present: Vec::new(), absent: Vec::new(), unbuilt: Vec::new() };
    let mut candidates = match setup::candidates(wanted.kind, competitors) {
        Ok(candidates) => candidates,
        Err(error) => {
            found.absent.push(UnavailableCompetitor {
                name: "competitors".to_owned(),
                reason: format!("{error:#}"),
            });
            return found;
        }
    };
    if let Some(names) = wanted.names {
        candidates.retain(|candidate| names.contains(&candidate.name.as_str()));
        let is_there = |name: &str| candidates.iter().any(|candidate| candidate.name == name);
        let missing = names.iter().filter(|name| !is_there(name));
        found.absent.extend(missing.map(|name| UnavailableCompetitor {
            name: (*name).to_owned(),
            reason: format!("no such directory in {}", competitors.display()),
        }));
    }
    bar.set_length(candidates.len() as u64);
    for (done, candidate) in candidates.into_iter().enumerate() {
        bar.set_position(done as u64);
        bar.set_message(format!("{}: building", candidate.name));
        let program = setup::prepare(wanted.kind, &candidate, target, wanted.missing);
        match program.and_then(&start) {
            Ok(competitor) => found.present.push(competitor),
            Err(error) => {
                found.unbuilt.extend(error.is::<NotBuilt>().then(|| candidate.name.clone()));
                found.absent.push(UnavailableCompetitor {
                    name: candidate.name,
                    reason: format!("{error:#}"),
                });
            }
        }
    }
    found
}

/// Parses a program's one line of output, or returns the error that it contains. Error messages
/// name `format`.
pub(crate) fn parse<T: DeserializeOwned>(
    output: &ProgramOutput,
    format: &str,
) -> anyhow::Result<T> {
    let parsed: Result<Value, _> = serde_json::from_str(&output.stdout);
    if let Some(error) = parsed.as_ref().ok().and_then(|answer| answer["error"].as_str()) {
        bail!("{error}");
    }
    output.check()?;
    let answer = parsed.context("the program did not print one line of JSON")?;
    serde_json::from_value(answer)
        .with_context(|| format!("the program's output does not follow {format}"))
}
