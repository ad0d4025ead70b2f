//! Runs cargo and returns the compiled files; `cargo test --no-run` compiles all tests at once.
//!
//! # Invariants
//! - Cargo always compiles with the features of the whole workspace, so no crate is compiled twice.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::test_jobs::test_job::TestJob;

/// A file that cargo compiled.
pub(crate) struct CargoArtifact {
    /// The directory of the package.
    folder: PathBuf,
    /// The kind of target: `lib`, `bin`, `test`, …
    kind: String,
    name: String,
    is_test: bool,
    /// The first file of the target, or its executable.
    pub(crate) path: PathBuf,
}

/// Returns a cargo command like one that was started by hand: build scripts depend on the variables
/// that `cargo run` sets for this program, so `ring` would be recompiled in each clone, and after
/// each build by hand.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs `cargo ARGS…`, which compiles, and returns the compiled files.
pub(crate) fn compile(root: &Path, args: &[&str]) -> Result<Vec<CargoArtifact>> {
    let mut cargo = cargo(root);
    cargo.args(args).args(["--locked", "--message-format"]);
    let mut child = cargo
        .arg("json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let messages = BufReader::new(child.stdout.take().context("stdout is piped")?);
    let mut made = Vec::new();
    for line in messages.lines() {
        let message = serde_json::from_str(&line?).context("cannot parse cargo's messages")?;
        made.extend(artifact(&message));
    }
    ensure!(child.wait()?.success(), "`cargo {}` failed", args.join(" "));
    Ok(made)
}

fn artifact(message: &Value) -> Option<CargoArtifact> {
    let target = &message["target"];
    let path = message["executable"].as_str().or_else(|| message["filenames"][0].as_str())?;
    Some(CargoArtifact {
        folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        kind: target["kind"][0].as_str()?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        is_test: message["profile"]["test"].as_bool()?,
        path: path.into(),
    })
}

/// Compiles all test programs of the workspace and `warren`; `only` is the name of one integration
/// test.
pub(crate) fn compile_tests(root: &Path, only: Option<&str>) -> Result<Vec<CargoArtifact>> {
    let only: Vec<&str> = only.into_iter().flat_map(|name| ["--test", name]).collect();
    compile(root, &[&["test", "--no-run", "--workspace"], &only[..]].concat())
}

/// Finds the program `warren` among compiled files.
pub(crate) fn warren(made: &[CargoArtifact]) -> Result<&Path> {
    let mut binaries = made.iter().filter(|one| one.kind == "bin" && !one.is_test);
    let warren =
        binaries.find(|one| one.name == "warren").context("cargo did not build `warren`")?;
    Ok(&warren.path)
}

/// Crates whose tests need a real disk: flushes during other work, files that are not in memory.
const ABOUT_DISK: &[&str] = &["bench", "engine"];

/// Returns a job for each test program, and one for the examples in the documentation.
pub(crate) fn jobs(root: &Path, made: &[CargoArtifact]) -> Vec<TestJob> {
    let tests = made.iter().filter(|one| one.is_test);
    let mut jobs: Vec<TestJob> = tests.map(|test| test.job(root)).collect();
    let mut documented = cargo(root);
    documented.args(["test", "--locked", "--workspace", "--doc", "--no-fail-fast"]);
    let name = "examples in the documentation".to_owned();
    jobs.push(TestJob { name, command: documented, is_about_disk: false, has_named_tests: false });
    jobs
}

impl CargoArtifact {
    /// Runs the test program like cargo, except for its output format, which is not stable in Rust:
    /// `RUSTC_BOOTSTRAP` lets the pinned compiler's libtest use it.
    fn job(&self, root: &Path) -> TestJob {
        let package = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let is_unit = self.kind != "test";
        let name =
            if is_unit { package.clone().into_owned() } else { format!("{package} {}", self.name) };
        let mut command = Command::new(&self.path);
        command.args(["-Zunstable-options", "--format=json", "--report-time"]);
        command.current_dir(&self.folder).env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        // The tests start hundreds of Node processes, which all compile the same megabytes of
        // script.
        command.env("NODE_COMPILE_CACHE", root.join("target/tmp/node"));
        let is_about_disk = ABOUT_DISK.contains(&package.as_ref());
        TestJob { name, command, is_about_disk, has_named_tests: true }
    }
}
