//! Where SQLite's temporary files go, as the environment says.

use std::path::PathBuf;

/// What the environment says of SQLite's temporary files.
#[derive(Clone, Debug, Default)]
pub struct TempDirVariables {
    /// `SQLITE_TMPDIR`
    pub sqlite_tmpdir: Option<PathBuf>,
    /// `TMPDIR`
    pub tmpdir: Option<PathBuf>,
    /// A program told this of its own.
    pub is_told: bool,
}
