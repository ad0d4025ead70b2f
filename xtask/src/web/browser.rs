//! `cargo xtask browser [NAME…]`: the tests in `web/tests`, most of them in Chromium, on the binary
//! with its site.
//!
//! Each `NAME.test.ts`, at any depth, becomes a module in `target/web/tests`, which Node's own test runner runs.
//!
//! # Not here
//! - Building the site → `cargo xtask web`. Starting servers and browsers → `web/tests/harness.ts`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, os::unix};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::inputs::files_below;
use super::{Places, succeed};

/// Packages that find their own files, and so are not bundled.
const EXTERNAL: &[&str] = &["@sqlite.org/sqlite-wasm", "axe-core", "playwright-core"];

/// Runs the named tests; all of them if none is named.
pub(crate) fn test(root: &Path, names: &[&str]) -> Result<bool> {
    let places = Places::new(root)?;
    let warren = compile(&places)?;
    let modules = bundle(&places, names)?;
    let mut node = Command::new(node(&places));
    // Each file starts servers and a browser of its own.
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]).args(modules);
    node.current_dir(&places.root).env("WARREN_BINARY", warren);
    node.env("PLAYWRIGHT_BROWSERS_PATH", root.join("target/actual/browsers"));
    Ok(node.status().context("cannot start node; `make test` installs it")?.success())
}

/// Returns the binary, wherever cargo's target directory is.
fn compile(places: &Places) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&places.root).stderr(Stdio::inherit());
    cargo.args(["build", "--locked", "--package", "cli"]);
    let output = cargo.args(["--message-format", "json-render-diagnostics"]).output();
    let output = output.context("cannot start cargo")?;
    ensure!(output.status.success(), "building warren failed");
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| Some(message["executable"].as_str()?.into()));
    programs.next_back().context("cargo made no binary")
}

/// Returns the modules that the tests became.
fn bundle(places: &Places, names: &[&str]) -> Result<Vec<PathBuf>> {
    let is_test = |file: &PathBuf| file.to_string_lossy().ends_with(".test.ts");
    let is_wanted = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        names.is_empty() || names.iter().any(|wanted| name == format!("{wanted}.test.ts"))
    };
    let (source, folder) = (places.web.join("tests"), places.out.join("tests"));
    let tests = files_below(&source)?.into_iter();
    let tests: Vec<PathBuf> = tests.filter(is_test).filter(is_wanted).collect();
    ensure!(!tests.is_empty(), "there is no such test in web/tests");
    let mut esbuild = places.npm("esbuild");
    esbuild.args(&tests).args(["--bundle", "--platform=node", "--format=esm", "--sourcemap"]);
    esbuild.args(["--out-extension:.js=.mjs", "--target=node20", "--log-level=warning"]);
    esbuild.args(EXTERNAL.iter().map(|package| format!("--external:{package}")));
    esbuild.arg(format!("--outbase={}", source.display()));
    succeed(esbuild.arg(format!("--outdir={}", folder.display())))?;
    link_packages(places)?;
    let module =
        |test: &PathBuf| Ok(folder.join(test.strip_prefix(&source)?.with_extension("mjs")));
    tests.iter().map(module).collect()
}

/// So that what is external is found from where the modules are.
fn link_packages(places: &Places) -> Result<()> {
    let link = places.out.join("node_modules");
    match unix::fs::symlink(places.web.join("node_modules"), &link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked.with_context(|| format!("making {}", link.display())),
    }
}

/// The Node that the tests of Actual's apps have, where they are installed.
fn node(places: &Places) -> PathBuf {
    let installed = places.root.join("target/actual/node_modules/.bin/node");
    if fs::exists(&installed).unwrap_or(false) { installed } else { PathBuf::from("node") }
}
