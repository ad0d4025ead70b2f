//! Runs `cargo xtask fuzz TARGET [--minutes N]`: searches for inputs that break a target of
//! `crates/fuzz`, with LLVM's libFuzzer, and keeps those that reach new code.
//!
//! rustc instruments the Rust code and its dependencies, not SQLite's C. An input that breaks the
//! target is written to `target/fuzz/found`, and ends the search.
//!
//! # Not here
//! - Testing the kept inputs in `make test` → `crates/fuzz/tests/corpora.rs`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo_artifacts;
use crate::terminal::print_line;

/// The flags that `cargo fuzz` passes (cargo-fuzz 0.13), except the address sanitizer: the Rust
/// code is safe.
const RUST_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks";
/// The size limit of an input: kept inputs are part of the repository.
const INPUT_BYTES_MAX: usize = 4 << 10;
/// The time limit of one input in seconds.
const INPUT_SECONDS_MAX: usize = 20;
const MINUTES: &str = "5";

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<bool> {
    let (target, minutes) = match args {
        [target] => (*target, MINUTES),
        [target, "--minutes", minutes] => (*target, *minutes),
        _ => bail!("usage: cargo xtask fuzz TARGET [--minutes N]"),
    };
    let minutes: std::num::NonZeroU64 =
        minutes.parse().context("--minutes must be a whole number, at least 1")?;
    let seconds = 60 * minutes.get();
    let folder = root.join("target/fuzz");
    let inputs = folder.join("inputs").join(target);
    let found = folder.join("found");
    corpus(root, "unpack", target, &inputs)?;
    fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
    let search = || {
        let mut search = Command::new(folder.join(triple()).join("release/search"));
        search.env("WARREN_FUZZED", target).arg(format!("-max_len={INPUT_BYTES_MAX}"));
        search
    };
    compile(root, &folder)?;
    let mut searching = search();
    searching.arg(format!("-max_total_time={seconds}"));
    searching.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    searching.arg(format!("-artifact_prefix={}/{target}-", found.display()));
    searching.args(["-print_final_stats=1", "-reload=0"]).arg(&inputs);
    let holds = searching.status().context("cannot start the fuzzer")?.success();

    let kept = folder.join("kept").join(target);
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::create_dir_all(&kept)?;
    let mut keeping = search();
    keeping.args(["-set_cover_merge=1", "-verbosity=0"]).args([&kept, &inputs]);
    if !keeping.status().context("cannot start the fuzzer")?.success() {
        bail!("cannot reduce the inputs to those that add coverage");
    }
    corpus(root, "pack", target, &kept)?;
    if !holds {
        print_line(format_args!("{target}: an input fails, see {}", found.display()))?;
    }
    Ok(holds)
}

fn compile(root: &Path, folder: &Path) -> Result<()> {
    let mut cargo = cargo_artifacts::cargo(root);
    cargo
        .args(["build", "--locked", "--release", "--package=fuzz", "--features=search"])
        .args(["--bin=search", "--target", triple(), "--target-dir"])
        .arg(folder)
        // This variable would take precedence over `RUSTFLAGS`.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", RUST_FLAGS);
    if !cargo.status().context("cannot start `cargo`")?.success() {
        bail!("the fuzzer does not compile");
    }
    Ok(())
}

/// Returns the program's target. With an explicit target, build scripts and macros are not
/// instrumented.
fn triple() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "aarch64-unknown-linux-gnu",
        _ => "x86_64-unknown-linux-gnu",
    }
}

fn corpus(root: &Path, verb: &str, target: &str, folder: &Path) -> Result<()> {
    let mut cargo = cargo_artifacts::cargo(root);
    cargo.args([
        "run",
        "--locked",
        "--quiet",
        "--package=fuzz",
        "--bin=corpus",
        "--",
        verb,
        target,
    ]);
    if !cargo.arg(folder).status().context("cannot start `cargo`")?.success() {
        bail!("`corpus {verb} {target}` failed");
    }
    Ok(())
}
