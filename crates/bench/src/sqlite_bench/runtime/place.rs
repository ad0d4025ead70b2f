//! Finds the folders of the drivers, checks whether they were set up, and sets them up.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::setup::{InstallMarker, MissingTools};
use crate::competitors::{self, shipped};
use crate::sqlite_bench::driver::LabDrivers;
use crate::sqlite_bench::runtime::{CompetitorFilter, CompetitorKind, CompetitorSearch, LabDriver};

/// The measured cost of setting up the shipped drivers: four releases of Node, two libraries
/// compiled for each, and a Python environment.
const COST: &str = "1 GB of disk space and 15 minutes on two cores";

/// The command that builds the drivers.
pub(crate) const SETUP: &str = "warren bench runtime --setup";

/// A folder with drivers, and a folder for their builds.
#[derive(Clone, Debug)]
pub struct DriverFolders {
    pub(super) drivers: PathBuf,
    pub(super) target: PathBuf,
    is_shipped: bool,
}

impl DriverFolders {
    /// Returns the folders for `bench/competitors` of a repository, or a folder like it; the
    /// builds go into the repository's `target/competitors`.
    pub fn in_repository(drivers: PathBuf) -> Self {
        Self { target: competitors::target(&drivers), drivers, is_shipped: false }
    }

    /// Writes the drivers that this program contains into a cache folder, and returns the folders.
    pub fn shipped(cache: &Path) -> anyhow::Result<Self> {
        let competitors = cache.join("competitors");
        let drivers = shipped::write_out(&competitors)?;
        Ok(Self { drivers, target: competitors.join("built"), is_shipped: true })
    }

    /// Builds and installs the drivers.
    pub fn set_up(&self, bar: &ProgressBar) -> anyhow::Result<LabDrivers> {
        let found = find(self, MissingPolicy::Build, bar);
        bar.finish_and_clear();
        let missing = MissingTools::here().filter(|_| !found.absent.is_empty());
        // The marker is set even if some drivers are absent: the user has seen the reasons and may
        // continue without them.
        self.mark().set()?;
        Ok(LabDrivers::new(found, missing))
    }

    /// Returns the drivers that were never set up here; `None` if there are none, or if
    /// [`DriverFolders::set_up`] has tried.
    pub fn not_set_up(&self, bar: &ProgressBar) -> anyhow::Result<Option<NotSetUp>> {
        if self.mark().is_set()? {
            return Ok(None);
        }
        let found = find(self, MissingPolicy::Absent(SETUP), bar);
        bar.finish_and_clear();
        Ok((!found.unbuilt.is_empty()).then(|| NotSetUp {
            drivers: found.unbuilt,
            command: self.setup_command(),
            target: self.target.clone(),
            cost: self.is_shipped.then_some(COST),
            missing: MissingTools::here(),
        }))
    }

    fn setup_command(&self) -> String {
        let drivers = self.drivers.display();
        if self.is_shipped { SETUP.to_owned() } else { format!("{SETUP} --competitors {drivers}") }
    }

    fn mark(&self) -> InstallMarker {
        InstallMarker::new(self.target.join(".set-up"), self.drivers.display().to_string())
    }
}

/// Drivers that a user has to set up first: this takes too long, and downloads too much, to happen
/// without asking.
#[derive(Clone, Debug)]
pub struct NotSetUp {
    drivers: Vec<String>,
    command: String,
    target: PathBuf,
    cost: Option<&'static str>,
    missing: Option<MissingTools>,
}

impl NotSetUp {
    /// Returns lines for people who may be asked: which drivers are missing, where they would be
    /// installed, and the cost.
    pub fn lines(&self) -> Vec<String> {
        let takes = self.cost.map(|cost| format!(", which needs about {cost}"));
        let lines = [
            format!("drivers that are not installed: {}", by_library(&self.drivers)),
            format!(
                "`{}` installs them from npm and PyPI into {}{}",
                self.command,
                self.target.display(),
                takes.unwrap_or_default()
            ),
        ];
        lines.into_iter().chain(self.missing.as_ref().map(MissingTools::text)).collect()
    }
}

impl fmt::Display for NotSetUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}

impl Error for NotSetUp {}

/// Formats drivers by library, each library once: `a on node 18, 20`.
fn by_library(drivers: &[String]) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut last = "";
    for driver in drivers {
        match driver.rsplit_once(' ') {
            Some((library, release)) if library == last => {
                if let Some(said) = said.last_mut() {
                    said.push_str(", ");
                    said.push_str(release);
                }
            }
            parts => {
                last = parts.map_or(driver, |(library, _)| library);
                said.push(driver.clone());
            }
        }
    }
    said.join("; ")
}

pub(crate) fn find(
    place: &DriverFolders,
    missing: MissingPolicy,
    bar: &ProgressBar,
) -> CompetitorSearch<LabDriver> {
    let wanted = CompetitorFilter { kind: CompetitorKind::Lab, names: None, missing };
    competitors::find(wanted, &place.drivers, &place.target, bar, LabDriver::start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_one_library_are_said_together() {
        let drivers = ["apsw", "better on node 18", "better on node 20", "other on node 18"];
        let drivers = drivers.map(str::to_owned);
        let expected = "apsw; better on node 18, 20; other on node 18";
        assert_eq!(by_library(&drivers), expected);
    }
}
