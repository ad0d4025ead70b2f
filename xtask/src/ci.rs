//! `cargo xtask ci [STEP…]`: every check that a change must pass, each one also alone.
//!
//! A failing step does not stop the ones after it, so one run shows all that is wrong.
//!
//! # Invariants
//! - `web` runs before whatever compiles the binary, which embeds what it makes.
//! - `test` runs last and nothing is printed after it succeeds: the output ends in the test
//!   runner's own closing lines.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::{sanitize, say, tidy, web};

struct Step {
    name: &'static str,
    /// Whether the tree passes; an error means that the step could not run at all.
    run: fn(&Path) -> Result<bool>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt },
    Step { name: "tidy", run: tidy::run },
    Step { name: "web", run: web::build_and_check },
    Step { name: "clippy", run: clippy },
    Step { name: "wasm", run: wasm },
    Step { name: "doc", run: doc },
    Step { name: "deny", run: deny },
    Step { name: "sanitize", run: sanitize::run },
    Step { name: "browser", run: |root| web::browser::test(root, &[]) },
    Step { name: "test", run: test },
];

pub(crate) fn names() -> String {
    STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn run(root: &Path, wanted: &[&str]) -> Result<bool> {
    let steps = select(wanted)?;
    let mut failed = Vec::new();
    for step in &steps {
        say(format_args!("==> {}", step.name))?;
        let start = now();
        let passed = match (step.run)(root) {
            Ok(passed) => passed,
            Err(error) => {
                say(format_args!("{error:#}"))?;
                false
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        if !passed {
            failed.push(step.name);
            say(format_args!("==> {} FAILED after {seconds:.1} s", step.name))?;
        } else if step.name != "test" {
            say(format_args!("==> {} passed in {seconds:.1} s", step.name))?;
        }
    }
    if !failed.is_empty() {
        say(format_args!(
            "ci: {} of {} steps failed: {}",
            failed.len(),
            steps.len(),
            failed.join(" ")
        ))?;
    }
    Ok(failed.is_empty())
}

/// The wanted steps in the order of `STEPS`; all of them if none is named.
fn select(wanted: &[&str]) -> Result<Vec<&'static Step>> {
    for name in wanted {
        let known = STEPS.iter().any(|step| step.name == *name);
        ensure!(known, "no step is called `{name}`; there are: {}", names());
    }
    let all = wanted.is_empty();
    Ok(STEPS.iter().filter(|step| all || wanted.contains(&step.name)).collect())
}

fn fmt(root: &Path) -> Result<bool> {
    succeeds(&mut cargo(root, &["fmt", "--all", "--check"]))
}

fn clippy(root: &Path) -> Result<bool> {
    let args = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    succeeds(&mut cargo(root, &args))
}

fn wasm(root: &Path) -> Result<bool> {
    let target = ["build", "--locked", "--target", "wasm32-unknown-unknown"];
    succeeds(cargo(root, &target).args(["-p", "crdt", "-p", "protocol", "-p", "replica-wasm"]))
}

fn doc(root: &Path) -> Result<bool> {
    let args = ["doc", "--locked", "--workspace", "--no-deps"];
    succeeds(cargo(root, &args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Licences, bans and sources need no network; the advisory database is a git repository on GitHub.
fn deny(root: &Path) -> Result<bool> {
    let offline = ["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    let offline_checks_pass = succeeds(cargo_deny(root).args(offline))?;
    let fetched = succeeds(cargo_deny(root).args(["fetch", "db"]).stderr(Stdio::null()))?;
    if !fetched {
        say("deny: SKIPPED advisories: the advisory database could not be fetched from GitHub")?;
        return Ok(offline_checks_pass);
    }
    let args = ["--locked", "check", "--disable-fetch", "advisories"];
    Ok(succeeds(cargo_deny(root).args(args))? && offline_checks_pass)
}

fn test(root: &Path) -> Result<bool> {
    succeeds(&mut cargo(root, &["test", "--locked", "--workspace", "--no-fail-fast"]))
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(args);
    command
}

/// The version that `make test` installed if there is one, else what is on the `PATH`.
fn cargo_deny(root: &Path) -> Command {
    let installed = root.join("target/tools/bin/cargo-deny");
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

#[expect(clippy::disallowed_methods, reason = "a tool for people may time its own steps")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(wanted: &[&str]) -> Vec<&'static str> {
        select(wanted).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_run_in_their_own_order_and_tests_last() {
        assert_eq!(selected(&["test", "fmt"]), ["fmt", "test"]);
        assert_eq!(selected(&[]).last(), Some(&"test"));
        assert_eq!(selected(&[]).len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_named() {
        let error = select(&["fmt", "lint"]).err().unwrap().to_string();
        assert!(error.contains("`lint`"), "{error}");
    }

    #[test]
    fn a_failing_program_fails_its_step_and_a_missing_one_is_an_error() {
        assert!(!succeeds(&mut Command::new("false")).unwrap());
        assert!(succeeds(&mut Command::new("no-such-program-here")).is_err());
    }
}
