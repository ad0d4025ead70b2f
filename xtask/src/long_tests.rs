//! Runs `cargo xtask faults|attacks [--long] [NAME…]`, the tests that break file operations and
//! lose power, and those that attack a server; and `cargo xtask fuzz`.
//!
//! The short forms are part of `cargo xtask ci test`. In the long form the fault tests break every
//! operation of every scenario and create some thousand images, which takes hours on two cores; the
//! attacks take a quarter of an hour, and print the measurements of an honest user during them.

mod fuzz;

use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo_artifacts::cargo;

/// Runs one of the suites, by the name of its test program.
pub(crate) fn run(root: &Path, suite: &str, args: &[&str]) -> Result<bool> {
    if suite == "fuzz" {
        return fuzz::run(root, args);
    }
    let (flags, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| **arg == "--long");
    let mut cargo = cargo(root);
    cargo.args(["test", "--locked", "--package", "cli", "--test", suite, "--"]);
    cargo.args(["--nocapture", "--test-threads", "1"]).args(names);
    if !flags.is_empty() {
        cargo.env(format!("WARREN_{}", suite.to_uppercase()), "long");
    }
    Ok(cargo.status().context("cannot start cargo")?.success())
}
