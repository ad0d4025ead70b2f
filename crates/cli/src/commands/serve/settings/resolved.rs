//! Defines settings with their final values, and the source of each value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Arg;
use clap::builder::OsStr as ClapOsStr;

use super::definition::name;

/// An error for a file that cannot be parsed, or a value in it that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub(crate) struct InvalidSettings {
    file: PathBuf,
    line: Option<usize>,
    problem: String,
}

/// A setting with its final value.
pub(crate) struct ResolvedSetting {
    pub(crate) arg: Arg,
    /// The values: none if the setting is not set; several if it is a list.
    pub(crate) values: Vec<OsString>,
    pub(crate) origin: SettingOrigin,
}

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File { line: usize },
    Environment,
    CommandLine,
}

impl ResolvedSetting {
    pub(crate) fn default_of(arg: &Arg) -> Self {
        let values = arg.get_default_values().iter().map(ClapOsStr::to_os_string).collect();
        Self { arg: arg.clone(), values, origin: SettingOrigin::Default }
    }

    pub(crate) fn name(&self) -> &str {
        name(&self.arg)
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.arg.is_hide_env_values_set()
    }
}

impl SettingOrigin {
    /// Returns the rank of the source; the highest rank wins.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Environment => 2,
            Self::CommandLine => 3,
        }
    }
}

impl InvalidSettings {
    pub(crate) fn new(file: &Path, line: Option<usize>, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, problem: problem.into() }
    }
}

/// All settings with their final values.
pub(crate) struct ResolvedSettings {
    pub(crate) config: Option<PathBuf>,
    pub(crate) settings: Vec<ResolvedSetting>,
}
