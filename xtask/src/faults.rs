//! `cargo xtask faults [--long] [NAME…]`: the tests that break file operations and lose power.
//!
//! The short form is part of `cargo xtask ci test`. The long one breaks every operation of every
//! scenario and makes some thousand images, which takes hours on two cores.

use std::path::Path;

use anyhow::{Context, Result};

use crate::programs::cargo;

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<bool> {
    let (flags, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| **arg == "--long");
    let mut cargo = cargo(root);
    cargo.args(["test", "--locked", "--package", "cli", "--test", "faults", "--"]);
    cargo.args(["--nocapture", "--test-threads", "1"]).args(names);
    if !flags.is_empty() {
        cargo.env("WARREN_FAULTS", "long");
    }
    Ok(cargo.status().context("cannot start cargo")?.success())
}
