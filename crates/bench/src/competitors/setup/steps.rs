//! Runs the steps of a set-up: copies files and runs programs.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fmt, fs};

use anyhow::{Context, bail};

use crate::competitors::process;

/// The time limit of a build. `sqlx` with its SQLite takes 160 s on two cores.
pub(crate) const BUILD_TIME_MAX: Duration = Duration::from_mins(20);

pub(crate) const VERSION_TIME_MAX: Duration = Duration::from_secs(30);

/// Copies the files that the drivers of a language share to where the drivers look for them.
pub(crate) fn copy_shared(name: &str, folder: &Path, target: &Path) -> anyhow::Result<()> {
    copy_files(&folder.with_file_name(name), &target.join(name))
}

pub(crate) fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copy = || {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
        Ok::<_, std::io::Error>(())
    };
    copy().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Runs a command and returns its standard output, or an error if it failed.
pub(crate) fn run(command: &mut Command, time_max: Duration) -> anyhow::Result<String> {
    let output = process::run(command, "", time_max)?;
    output.check()?;
    Ok(output.stdout)
}

/// The treatment of a competitor that was not built or installed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingPolicy {
    /// The competitor is built or installed, which may take minutes.
    Build,
    /// The competitor is absent; this command builds it.
    Absent(&'static str),
}

impl MissingPolicy {
    /// Fails unless missing competitors may be built.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        if let Self::Absent(command) = self {
            bail!(NotBuilt(command));
        }
        Ok(())
    }
}

/// The error of [`MissingPolicy::Absent`].
#[derive(Debug)]
pub(crate) struct NotBuilt(&'static str);

impl fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not built yet: run `{}`", self.0)
    }
}

impl Error for NotBuilt {}
