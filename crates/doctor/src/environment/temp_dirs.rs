//! Defines the environment variables that choose SQLite's temporary directory.

use std::path::PathBuf;

/// The environment variables that choose SQLite's temporary directory.
#[derive(Clone, Debug, Default)]
pub struct TempDirVariables {
    /// The value of `SQLITE_TMPDIR`.
    pub sqlite_tmpdir: Option<PathBuf>,
    /// The value of `TMPDIR`.
    pub tmpdir: Option<PathBuf>,
    /// Whether the values come from a program's settings.
    pub is_told: bool,
}
