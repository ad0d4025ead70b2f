//! Prepares the competitors of `bench/competitors` to run: `cargo build` for Rust, `npm ci` for
//! Node, `pip install` for Python.
//!
//! A driver of the lab for Node is prepared once for each Node of `bench/competitors/node`.
//!
//! # Invariants
//! - All work is done in copies in the target folder; the competitors' folder does not change.

mod install_marker;
mod node;
mod python;
pub(crate) mod steps;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::Context;

pub(crate) use self::install_marker::InstallMarker;
use self::steps::{BUILD_TIME_MAX, MissingPolicy, copy_shared, run};
pub(crate) use self::tools::MissingTools;
use super::process::{self, DriverProgram};

/// The kind of a competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompetitorKind {
    /// A driver that carries out a plan with a library.
    Library,
    /// A server that is called over HTTP.
    Server,
    /// A driver that carries out a plan of the lab.
    Lab,
    /// A driver that carries out a plan of the lab in a browser, with the library that its
    /// arguments name.
    Browser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompetitorLanguage {
    Rust,
    Node,
    Python,
}

/// A competitor that can be prepared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CompetitorSource {
    /// The name in the report.
    pub(crate) name: String,
    folder: PathBuf,
    /// The release of `bench/competitors/node`, for a driver of the lab that Node runs.
    node: Option<node::NodeRelease>,
}

/// Returns the competitors of a kind, sorted by name.
pub(crate) fn candidates(
    kind: CompetitorKind,
    competitors: &Path,
) -> anyhow::Result<Vec<CompetitorSource>> {
    let list = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(competitors)? {
            let (folder, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let Some((language, _)) = recognise(kind, &folder) else { continue };
            let name = name.to_string_lossy().into_owned();
            if (kind, language) == (CompetitorKind::Lab, CompetitorLanguage::Node) {
                found.extend(node::releases(competitors)?.into_iter().map(|release| {
                    CompetitorSource {
                        name: format!("{name} on {release}"),
                        folder: folder.clone(),
                        node: Some(release),
                    }
                }));
            } else {
                found.push(CompetitorSource { name, folder, node: None });
            }
        }
        found.sort();
        anyhow::Ok(found)
    };
    list().with_context(|| format!("cannot list the competitors in {}", competitors.display()))
}

/// Prepares a competitor, unless that is already done; fails if `missing` does not allow a build.
pub(crate) fn prepare(
    kind: CompetitorKind,
    candidate: &CompetitorSource,
    target: &Path,
    missing: MissingPolicy,
) -> anyhow::Result<DriverProgram> {
    let target = std::path::absolute(target).context("cannot resolve the build directory")?;
    let (name, folder) = (&candidate.name, &candidate.folder);
    let (language, main) = recognise(kind, folder).context("not a directory of a competitor")?;
    match (language, &candidate.node) {
        (CompetitorLanguage::Rust, _) => build(name, folder, &target.join("cargo"), missing),
        (CompetitorLanguage::Node, None) => {
            if kind == CompetitorKind::Browser {
                copy_shared(node::SHARED, folder, &target)?;
            }
            node::install(main, folder, &target.join(name), missing)
        }
        (CompetitorLanguage::Node, Some(release)) => {
            node::install_for(release, main, folder, &target, missing)
        }
        (CompetitorLanguage::Python, _) => {
            if kind == CompetitorKind::Lab {
                copy_shared(python::SHARED, folder, &target)?;
            }
            python::install(main, folder, &target.join(name), missing)
        }
    }
}

/// Returns a competitor's language and the file name of its program, if the folder has one of this
/// kind.
fn recognise(kind: CompetitorKind, folder: &Path) -> Option<(CompetitorLanguage, &'static str)> {
    let programs: &[_] = match kind {
        CompetitorKind::Library => {
            &[(CompetitorLanguage::Rust, "src/main.rs"), (CompetitorLanguage::Node, "driver.js")]
        }
        CompetitorKind::Server => {
            &[(CompetitorLanguage::Node, "server.js"), (CompetitorLanguage::Python, "server.py")]
        }
        CompetitorKind::Lab => {
            &[(CompetitorLanguage::Node, "lab.js"), (CompetitorLanguage::Python, "lab.py")]
        }
        CompetitorKind::Browser => &[(CompetitorLanguage::Node, "browser.js")],
    };
    programs.iter().copied().find(|(_, program)| folder.join(program).is_file())
}

/// Builds a competitor each time, because cargo itself knows which parts are up to date.
fn build(
    name: &str,
    folder: &Path,
    target: &Path,
    missing: MissingPolicy,
) -> anyhow::Result<DriverProgram> {
    missing.check()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(target);
    run(cargo.current_dir(folder), BUILD_TIME_MAX).context("cargo build")?;
    let program = format!("competitor-{name}{}", env::consts::EXE_SUFFIX);
    Ok(DriverProgram { program: target.join("release").join(program), arguments: Vec::new() })
}
