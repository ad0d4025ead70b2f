//! The project's development commands: `cargo xtask build` for `make run`, `cargo xtask check`
//! after an edit, `cargo xtask ci` for everything that a change must pass, and the others in
//! `USAGE`.

mod build;
mod build_cache;
mod cargo_artifacts;
mod ci;
mod dist;
mod docs;
mod long_tests;
mod programs;
mod quick_check;
mod sanitize;
mod terminal;
mod test_jobs;
mod tidy;
mod web;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::terminal::print_line;

const USAGE: &str = "usage: cargo xtask build | cargo xtask check [REVISION] | cargo xtask tidy \
                     | cargo xtask ci [--retries N] [STEP…] | cargo xtask docs \
                     | cargo xtask dist [--binary FILE] [--glibc-max VERSION] | cargo xtask release-notes TAG \
                     | cargo xtask faults|attacks [--long] [NAME…] \
                     | cargo xtask fuzz TARGET [--minutes N] \
                     | cargo xtask web [--check] | cargo xtask browser [--retries N] [NAME…]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = root().and_then(|root| match args.as_slice() {
        ["build"] => build::run(root),
        ["check", since @ ..] if since.len() < 2 => quick_check::run(root, since.first().copied()),
        ["ci", args @ ..] => ci::run(root, args),
        ["dist", args @ ..] => dist::run(root, args),
        ["docs"] => docs::run(root),
        [suite @ ("attacks" | "faults" | "fuzz"), args @ ..] => long_tests::run(root, suite, args),
        ["release-notes", tag] => dist::release_notes::run(root, tag),
        ["tidy"] => tidy::run(root),
        ["web", args @ ..] => web::run(root, args),
        ["browser", args @ ..] => web::browser::test(root, args),
        ["help" | "--help"] => print_line(format_args!("{USAGE}\n{}", ci::steps())).map(|()| true),
        _ => anyhow::bail!("{USAGE}\n{}", ci::steps()),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If stderr is closed, there is no place to report that.
            drop(writeln!(io::stderr(), "xtask: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")
}
