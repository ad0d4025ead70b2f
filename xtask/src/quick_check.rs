//! Runs `cargo xtask check [REVISION]`, the quick checks after each edit.
//!
//! It runs formatting, `tidy`, clippy, and the unit tests of the crates that changed since the
//! revision or, without one, since the last commit. Everything else is left to `cargo xtask ci`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo_artifacts::cargo;
use crate::programs::output;
use crate::terminal::print_line;
use crate::{ci, web};

pub(crate) fn run(root: &Path, since: Option<&str>) -> Result<bool> {
    let checks_pass = ci::run(root, &["fmt", "tidy", "clippy"])?;
    let changed = changed_files(root, since.unwrap_or("HEAD"))?;
    let web_passes =
        !changed.iter().any(|file| file.starts_with("web/")) || web::run(root, &["--check"])?;
    let packages = packages(root, &changed);
    if packages.is_empty() {
        print_line("check: no crate has changed, nothing to test")?;
        return Ok(checks_pass && web_passes);
    }
    let mut cargo = cargo(root);
    cargo.args(["test", "--locked", "--quiet", "--bins", "--no-fail-fast"]);
    // Cargo rejects `--lib` if no package has a library.
    if packages.iter().any(|package| root.join("crates").join(package).join("src/lib.rs").exists())
    {
        cargo.arg("--lib");
    }
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    let tests_pass = cargo.status().context("cannot start cargo")?.success();
    Ok(checks_pass && web_passes && tests_pass)
}

/// Returns the changed files, including those that are not in the repository yet.
fn changed_files(root: &Path, since: &str) -> Result<Vec<String>> {
    let git = |args: &[&str]| output(Command::new("git").args(args).current_dir(root));
    let changed = git(&["diff", "--name-only", since])?;
    let added = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(added.lines()).map(str::to_owned).collect())
}

/// Returns the crates that these files belong to.
fn packages(root: &Path, files: &[String]) -> BTreeSet<String> {
    let package = |file: &String| {
        let mut parts = file.split('/');
        match parts.next()? {
            "xtask" => Some("xtask".to_owned()),
            "crates" => parts.next().map(str::to_owned),
            _ => None,
        }
    };
    let is_there = |name: &String| {
        name == "xtask" || root.join("crates").join(name).join("Cargo.toml").exists()
    };
    files.iter().filter_map(package).filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_crate_of_its_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("crates/engine")).unwrap();
        std::fs::write(root.path().join("crates/engine/Cargo.toml"), "").unwrap();
        let files =
            ["crates/engine/src/x.rs", "crates/gone/src/y.rs", "xtask/src/z.rs", "docs/a.md"];
        let found = packages(root.path(), &files.map(str::to_owned));
        assert_eq!(found, ["engine", "xtask"].map(str::to_owned).into());
    }
}
