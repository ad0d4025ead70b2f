//! Records in a file what was installed in a folder; the file is written last, so that an
//! interrupted installation does not count.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;

pub(crate) struct InstallMarker {
    path: PathBuf,
    installed: String,
}

impl InstallMarker {
    /// Returns the marker for the file at `path`; `installed` lists all that the installation
    /// depends on.
    pub(crate) fn new(path: PathBuf, installed: String) -> Self {
        Self { path, installed }
    }

    pub(crate) fn is_set(&self) -> anyhow::Result<bool> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            before => {
                let before =
                    before.with_context(|| format!("cannot read {}", self.path.display()))?;
                Ok(before == self.installed)
            }
        }
    }

    pub(crate) fn set(&self) -> anyhow::Result<()> {
        let write = || {
            // An installation may create no files; then the folder does not exist yet.
            self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&self.path, &self.installed)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
