//! Defines the paths of the pages' sources and build results, and starts the programs that build
//! them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// The paths of a web build.
pub(crate) struct WebPaths {
    pub(crate) root: PathBuf,
    /// The npm workspace.
    pub(crate) web: PathBuf,
    /// The directory of all build results except `web/client/dist`.
    pub(crate) out: PathBuf,
}

impl WebPaths {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        let places =
            Self { root: root.into(), web: root.join("web"), out: root.join("target/web") };
        let installed = places.web.join("node_modules/.bin/esbuild").exists();
        ensure!(installed, "web/node_modules does not exist: `make run` installs it (`npm ci`)");
        Ok(places)
    }

    /// Returns the command of a program that npm installed; it runs in `web/`.
    pub(crate) fn npm(&self, program: &str) -> Command {
        let mut command = Command::new(self.web.join("node_modules/.bin").join(program));
        command.current_dir(&self.web);
        command
    }

    pub(crate) fn dist(&self) -> PathBuf {
        self.web.join("client/dist")
    }
}
