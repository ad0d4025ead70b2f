//! Runs `cargo xtask browser [--retries N] [NAME…]`: the tests in `web/tests`, most of them in
//! Chromium, against the binary with its site.
//!
//! Each `NAME.test.ts`, at any depth, is bundled into a module in `target/web/tests`, which Node's
//! own test runner runs.
//!
//! # Not here
//! - Building the site → `cargo xtask web`.
//! - Starting servers and browsers → `web/tests/harness.ts`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::input_fingerprint::files_below;
use super::web_paths::WebPaths;
use crate::programs::succeed;
use crate::test_jobs::test_job::TestJob;
use crate::{cargo_artifacts, test_jobs};

/// Packages that load files of their own, and so are not bundled.
const EXTERNAL: &[&str] =
    &["@sqlite.org/sqlite-wasm", "axe-core", "json-schema-to-typescript", "playwright-core"];

/// Runs the named tests, or all of them if there are no names.
pub(crate) fn test(root: &Path, args: &[&str]) -> Result<bool> {
    let (names, retries_count) = test_jobs::retries(args)?;
    let report = test_jobs::run(jobs(root, names)?, retries_count)?;
    let is_passed = report.is_passed();
    report.print(&[])?;
    Ok(is_passed)
}

/// Returns a job for each file: each starts servers and a browser of its own.
pub(crate) fn jobs(root: &Path, names: &[&str]) -> Result<Vec<TestJob>> {
    let places = WebPaths::new(root)?;
    let made = cargo_artifacts::compile_tests(root, Some("e2e"))?;
    let warren = cargo_artifacts::warren(&made)?;
    let modules = bundle(&places, names)?;
    let reporter = places.web.join("tests/reporter.mjs");
    let job = |module: PathBuf| {
        let stem = module.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("web {}", stem.trim_end_matches(".test"));
        let mut node = Command::new(node(&places));
        node.arg("--disable-warning=ExperimentalWarning");
        node.arg("--test-reporter").arg(&reporter).arg("--test").arg(module);
        node.current_dir(root).env("WARREN_BINARY", warren);
        node.env("PLAYWRIGHT_BROWSERS_PATH", root.join("target/actual/browsers"));
        TestJob { name, command: node, is_about_disk: false, has_named_tests: false }
    };
    Ok(modules.into_iter().map(job).collect())
}

/// Bundles the tests and returns their modules.
fn bundle(places: &WebPaths, names: &[&str]) -> Result<Vec<PathBuf>> {
    let is_test = |file: &PathBuf| file.to_string_lossy().ends_with(".test.ts");
    let is_wanted = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        names.is_empty() || names.iter().any(|wanted| name == format!("{wanted}.test.ts"))
    };
    let (source, folder) = (places.web.join("tests"), places.out.join("tests"));
    let tests = files_below(&source)?.into_iter();
    let tests: Vec<PathBuf> = tests.filter(is_test).filter(is_wanted).collect();
    ensure!(!tests.is_empty(), "no such test in web/tests");
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

/// Links the npm packages, so that the modules find those that are not bundled.
fn link_packages(places: &WebPaths) -> Result<()> {
    let link = places.out.join("node_modules");
    match unix::fs::symlink(places.web.join("node_modules"), &link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked.with_context(|| format!("cannot create {}", link.display())),
    }
}

/// Returns the Node of the tests of Actual's apps, if it is installed.
fn node(places: &WebPaths) -> PathBuf {
    let installed = places.root.join("target/actual/node_modules/.bin/node");
    if fs::exists(&installed).unwrap_or(false) { installed } else { PathBuf::from("node") }
}
