//! A file that says what was installed in a folder; it is written last, so that what was
//! interrupted counts as not done.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;

pub(crate) struct InstallMarker {
    path: PathBuf,
    installed: String,
}

impl InstallMarker {
    /// The file, and all that the installation depends on.
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
            // What was installed may be nothing: then the folder is not there.
            self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&self.path, &self.installed)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
