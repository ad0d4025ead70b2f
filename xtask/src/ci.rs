//! Runs `cargo xtask ci [--retries N] [STEP…]`: every check that a change must pass, or single
//! steps.
//!
//! A failing step does not stop the later ones, so one run shows all errors.
//!
//! # Invariants
//! - `web` runs before all steps that compile the binary, which embeds its output.
//! - The tests of all wanted steps run last, together. The output ends with the failed steps and
//!   tests, and the closing line of the tests: the end of a log shows why a run failed.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::terminal::{now, print_line};
use crate::test_jobs::test_job::{TestFailure, TestJob};
use crate::test_jobs::{self, TestReport, test_job};
use crate::{build_cache, cargo_artifacts, dist, sanitize, tidy, web};

struct CiStep {
    name: &'static str,
    run: CiStepKind,
}

/// The work of a step. An error means that the step could not run at all.
enum CiStepKind {
    /// Returns whether the tree passes.
    Check(fn(&Path) -> Result<bool>),
    /// Compiles test programs and returns their jobs.
    Tests(fn(&Path) -> Result<Vec<TestJob>>),
}

const STEPS: &[CiStep] = &[
    CiStep { name: "fmt", run: CiStepKind::Check(fmt) },
    CiStep { name: "tidy", run: CiStepKind::Check(tidy::run) },
    CiStep { name: "web", run: CiStepKind::Check(web::build_and_check) },
    CiStep { name: "clippy", run: CiStepKind::Check(clippy) },
    CiStep { name: "wasm", run: CiStepKind::Check(wasm) },
    CiStep { name: "doc", run: CiStepKind::Check(doc) },
    CiStep { name: "sanitize", run: CiStepKind::Check(sanitize::run) },
    CiStep { name: "test", run: CiStepKind::Tests(test) },
    CiStep { name: "dist", run: CiStepKind::Check(dist::check) },
    CiStep { name: "browser", run: CiStepKind::Tests(|root| web::browser::jobs(root, &[])) },
    CiStep { name: "deny", run: CiStepKind::Check(deny) },
];

/// The step that, like the tests, needs the programs of `.ci/setup.sh tools`, which are installed
/// while other steps compile.
const NEEDS_TOOLS: &str = "deny";

/// The flag with which `ci` runs a single check and nothing else: `ci` starts itself with it to
/// capture the output.
const CHECK_ALONE: &str = "--check-alone";

/// The number of lines of a check's output that are kept for the end.
const CHECK_LINES_MAX: usize = 2_000;

/// The starts of lines that report an error: of the compiler, tests, npm, `cargo fmt` and this
/// program.
const ERROR_STARTS: &[&str] = &["error", "failures:", "npm error", "Diff in", "xtask:"];

/// The text that follows the place in a file in an error of TypeScript or the linker.
const ERROR_AFTER_PLACE: &str = ": error";

/// Returns the text `steps: …` with the names of all steps.
pub(crate) fn steps() -> String {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    format!("steps: {}", names.join(" "))
}

/// Runs the wanted steps, `[--retries N] [STEP…]`.
pub(crate) fn run(root: &Path, args: &[&str]) -> Result<bool> {
    if let [CHECK_ALONE, name] = args {
        return run_check(root, name);
    }
    let (wanted, retries_count) = test_jobs::retries(args)?;
    let steps = select(wanted)?;
    let mut tools = if wanted.is_empty() { Some(install_tools(root)?) } else { None };
    let mut ran = CiOutcome { failed: Vec::new(), jobs: Vec::new() };
    for step in &steps {
        if step.name == NEEDS_TOOLS {
            wait(&mut tools)?;
        }
        ran.run(root, step)?;
    }
    build_cache::save(root)?;
    wait(&mut tools)?;
    let CiOutcome { failed, jobs } = ran;
    let report = if jobs.is_empty() { None } else { Some(test_jobs::run(jobs, retries_count)?) };
    let is_passed = failed.is_empty() && report.as_ref().is_none_or(TestReport::is_passed);
    match report {
        Some(report) => report.print(&failed)?,
        None => failed.iter().try_for_each(print_line)?,
    }
    Ok(is_passed)
}

/// Runs one check in this process.
fn run_check(root: &Path, name: &str) -> Result<bool> {
    match select(&[name])?[..] {
        [CiStep { run: CiStepKind::Check(check), .. }] => check(root),
        _ => bail!("`{name}` is not a check"),
    }
}

/// Runs one check in a process of its own, and both prints and returns its output.
fn run_apart(root: &Path, name: &str) -> Result<(bool, Vec<String>)> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let (output, input) = std::io::pipe()?;
    let mut command = Command::new(program);
    command.args(["ci", CHECK_ALONE, name]).current_dir(root).stdin(Stdio::null());
    command.stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().context("cannot start a check")?;
    // The command holds the pipe's writing end: while that is open, the output does not end.
    drop(command);
    let mut lines = VecDeque::new();
    for line in test_job::lines(output) {
        print_line(&line)?;
        if lines.len() == CHECK_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
    Ok((child.wait()?.success(), lines.into()))
}

/// Returns a check's output from the first line that reports an error, or all of it if none does.
fn from_first_error(lines: &[String]) -> String {
    let is_error = |line: &String| {
        ERROR_STARTS.iter().any(|start| line.starts_with(start)) || line.contains(ERROR_AFTER_PLACE)
    };
    let start = lines.iter().position(is_error).unwrap_or(0);
    lines[start..].join("\n")
}

struct CiOutcome {
    failed: Vec<TestFailure>,
    jobs: Vec<TestJob>,
}

impl CiOutcome {
    fn run(&mut self, root: &Path, step: &CiStep) -> Result<()> {
        print_line(format_args!("==> {}", step.name))?;
        let start = now();
        let outcome = match step.run {
            CiStepKind::Check(_) => run_apart(root, step.name),
            CiStepKind::Tests(compile) => compile(root).map(|jobs| {
                self.jobs.extend(jobs);
                (true, Vec::new())
            }),
        };
        let (is_passed, lines) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let text = format!("{error:#}");
                print_line(&text)?;
                (false, vec![text])
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let how = match step.run {
            _ if !is_passed => "FAILED after",
            CiStepKind::Check(_) => "passed in",
            CiStepKind::Tests(_) => "compiled in",
        };
        if !is_passed {
            let name = format!("step {}", step.name);
            self.failed.push(TestFailure::new(name, None, &from_first_error(&lines)));
        }
        print_line(format_args!("==> {} {how} {seconds:.1} s", step.name))
    }
}

/// Returns the wanted steps in the order of `STEPS`, or all of them if no name is given.
fn select(wanted: &[&str]) -> Result<Vec<&'static CiStep>> {
    for name in wanted {
        let known = STEPS.iter().any(|step| step.name == *name);
        ensure!(known, "unknown step `{name}`; {}", steps());
    }
    let all = wanted.is_empty();
    Ok(STEPS.iter().filter(|step| all || wanted.contains(&step.name)).collect())
}

fn install_tools(root: &Path) -> Result<Child> {
    let mut setup = Command::new(root.join(".ci/setup.sh"));
    setup.arg("tools").stdin(Stdio::null()).spawn().context("cannot start .ci/setup.sh")
}

fn wait(tools: &mut Option<Child>) -> Result<()> {
    if let Some(mut tools) = tools.take() {
        ensure!(tools.wait()?.success(), "`.ci/setup.sh tools` failed");
    }
    Ok(())
}

fn fmt(root: &Path) -> Result<bool> {
    succeeds(&mut cargo(root, &["fmt", "--all", "--check"]))
}

fn clippy(root: &Path) -> Result<bool> {
    let args = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    // `make run` builds without the benchmarks.
    let served =
        ["clippy", "--locked", "--package", "cli", "--no-default-features", "--", "-D", "warnings"];
    Ok(succeeds(&mut cargo(root, &args))? && succeeds(&mut cargo(root, &served))?)
}

/// Compiles the pure crates and the replica for browsers, like `web`.
fn wasm(root: &Path) -> Result<bool> {
    web::wasm::compile(root).map(|_| true)
}

fn doc(root: &Path) -> Result<bool> {
    let args = ["doc", "--locked", "--workspace", "--no-deps"];
    succeeds(cargo(root, &args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks dependencies. Licenses, bans and sources need no network; the advisory database is a git
/// repository on GitHub.
fn deny(root: &Path) -> Result<bool> {
    let offline = ["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    let offline_checks_pass = succeeds(cargo_deny(root).args(offline))?;
    let fetched = succeeds(cargo_deny(root).args(["fetch", "db"]).stderr(Stdio::null()))?;
    if !fetched {
        print_line(
            "deny: SKIPPED advisories: the advisory database could not be fetched from GitHub",
        )?;
        return Ok(offline_checks_pass);
    }
    let args = ["--locked", "check", "--disable-fetch", "advisories"];
    Ok(succeeds(cargo_deny(root).args(args))? && offline_checks_pass)
}

fn test(root: &Path) -> Result<Vec<TestJob>> {
    Ok(cargo_artifacts::jobs(root, &cargo_artifacts::compile_tests(root, None)?))
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = cargo_artifacts::cargo(root);
    command.args(args);
    command
}

/// Returns the cargo-deny that `make test` installed, or else the one on the `PATH`.
fn cargo_deny(root: &Path) -> Command {
    let installed = root.join("target/cargo-deny/bin/cargo-deny");
    let mut command =
        if installed.exists() { Command::new(installed) } else { Command::new("cargo-deny") };
    command.current_dir(root);
    command
}

fn succeeds(command: &mut Command) -> Result<bool> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| {
        format!("cannot start `{program}`; `make test` installs what is missing")
    })?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(wanted: &[&str]) -> Vec<&'static str> {
        select(wanted).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_run_in_their_own_order() {
        assert_eq!(selected(&["test", "fmt"]), ["fmt", "test"]);
        assert_eq!(selected(&[]).len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_named() {
        let error = select(&["fmt", "lint"]).err().unwrap().to_string();
        assert!(error.contains("`lint`"), "{error}");
    }

    #[test]
    fn the_first_error_of_a_check_is_kept() {
        let first = |text: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            from_first_error(&lines)
        };
        let compiled = "Checking a\nwarning: x\nerror[E0425]: y\n --> a.rs";
        assert_eq!(first(compiled), "error[E0425]: y\n --> a.rs");
        assert_eq!(first("checked\na.ts(3,4): error TS2322: z"), "a.ts(3,4): error TS2322: z");
        assert_eq!(first("a.rs:3: size: split it\ntidy: 1 finding").lines().count(), 2);
    }

    #[test]
    fn a_failing_program_fails_its_step_and_a_missing_one_is_an_error() {
        assert!(!succeeds(&mut Command::new("false")).unwrap());
        assert!(succeeds(&mut Command::new("no-such-program-here")).is_err());
    }
}
