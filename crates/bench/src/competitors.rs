//! What others would pick instead: programs in `bench/competitors`, built or installed when they
//! are first wanted (`docs/reference/formats/7-competitor-drivers.md`,
//! `docs/reference/formats/12-lab-plan.md`).
//!
//! # Invariants
//! - A competitor that cannot be had on this machine is absent, with the reason; it has no figures.

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

/// Where everything goes that comes from building or installing a competitor: `target/competitors`
/// of the repository that has the folder `bench/competitors`.
pub(crate) fn target(competitors: &Path) -> PathBuf {
    competitors.join("../../target/competitors")
}

/// Competitors of one kind.
#[derive(Debug)]
pub(crate) struct CompetitorSearch<T> {
    pub(crate) present: Vec<T>,
    pub(crate) absent: Vec<UnavailableCompetitor>,
    /// Names of those absent that were only not built yet.
    pub(crate) unbuilt: Vec<String>,
}

/// A competitor that cannot be measured here.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UnavailableCompetitor {
    /// Its name, which is that of its folder.
    pub(crate) name: String,
    /// Why it cannot be measured here, for people.
    pub(crate) reason: String,
}

impl UnavailableCompetitor {
    /// For the notes of a report.
    pub(crate) fn note(&self) -> String {
        format!("absent: {} ({})", self.name, self.reason)
    }
}

/// Which competitors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompetitorFilter<'a> {
    pub(crate) kind: CompetitorKind,
    /// `None` for all of the kind.
    pub(crate) names: Option<&'a [&'a str]>,
    pub(crate) missing: MissingPolicy,
}

/// Builds or installs what is in the folder `competitors`, where that was not done before, and
/// starts it. All that comes from it goes into `target`, and the folder stays as it is.
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

/// What the one line says, or the error that it names. The format is named in what is wrong.
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
