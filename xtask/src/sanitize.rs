//! Runs `cargo xtask ci sanitize`: the engine's tests under `AddressSanitizer`, including C code.
//!
//! The engine's few `unsafe` blocks state how long a value lives, and SQLite relies on it. Here
//! each access to freed memory, and memory that is never freed, is an error, in both languages.
//! Rust's and C's compilers each instrument their own code, for the one runtime that comes with
//! Rust. The sanitizer is not stable in Rust; `RUSTC_BOOTSTRAP` lets the pinned compiler use it.
//!
//! # Invariants
//! - The sanitizer is tested first: it must report a program with a bug before the tests count.
//!
//! # Not here
//! - The models of the hand-off (`crates/engine/tests/model`): they have no unsafe code, and stacks
//!   of their own, which the sanitizer does not support.
//! - `ThreadSanitizer`: std would have to be compiled for it, from a component that is not stable.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::cargo_artifacts::cargo;
use crate::terminal::print_line;

const RUST_FLAGS: &str = "-Zsanitizer=address";

/// The flags for C. SQLite's own memory pools would hide from the runtime which memory is freed and
/// reused.
const C_FLAGS: &str = "-fsanitize=address -DSQLITE_OMIT_LOOKASIDE -DSQLITE_DEFAULT_PCACHE_INITSZ=0";

/// Dependencies are compiled once and used for seconds: optimizing them takes a minute. SQLite's C
/// code stays optimized, because without that it would cost two.
const CONFIG: [&str; 2] = [
    "--config=profile.dev.package.'*'.opt-level=0",
    "--config=profile.dev.package.sqlite3mc-sys.opt-level=1",
];

/// GCC merges equal constants and registers the result for each of them.
const OPTIONS: &str = "detect_odr_violation=0";

/// Tests of other properties, which would fail or take long under the sanitizer.
const SKIPPED: [&str; 4] = [
    // These run under strace, where leaks cannot be detected.
    "maintenance::killed::at_any_moment",
    "plaintext::no_plaintext_is_written",
    // The file that a kill leaves does not depend on memory.
    "kill::",
    // This test compares speeds, which the sanitizer changes.
    "snapshots::the_wal_stays_short",
];

/// A program with the bug that its argument names.
const CANARY: &str = r#"
fn main() {
    let boxed = Box::new([7_u8; 77]);
    match std::env::args().nth(1).as_deref() {
        Some("leak") => std::mem::forget(std::hint::black_box(boxed)),
        Some("use-after-free") => {
            let freed: *const u8 = std::hint::black_box(&raw const boxed[0]);
            drop(boxed);
            std::process::exit(i32::from(unsafe { freed.read_volatile() } == 0));
        }
        _ => {}
    }
}
"#;

pub(crate) fn run(root: &Path) -> Result<bool> {
    let Some(target) = target() else {
        print_line("sanitize: SKIPPED: requires Linux with glibc on x86-64 or ARM64")?;
        return Ok(true);
    };
    let folder = root.join("target/sanitize");
    let finds_leaks = try_canary(root, &folder)?;
    if !finds_leaks {
        print_line(
            "sanitize: SKIPPED leaks: leak detection needs ptrace, which is forbidden here",
        )?;
    }
    let mut cargo = cargo(root);
    cargo
        .args(CONFIG)
        .args(["test", "--locked", "--package=engine", "--package=sqlite3mc-sys"])
        .args(["--lib", "--test=it", "--no-fail-fast", "--target", target, "--target-dir"])
        .arg(&folder)
        .arg("--")
        .args(SKIPPED.iter().flat_map(|test| ["--skip", test]))
        .env("RUSTC_BOOTSTRAP", "1")
        // This variable would take precedence over `RUSTFLAGS`.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", RUST_FLAGS)
        .env(format!("CFLAGS_{}", target.replace('-', "_")), C_FLAGS)
        .env("ASAN_OPTIONS", options(finds_leaks));
    Ok(cargo.status().context("cannot start `cargo`")?.success())
}

fn target() -> Option<&'static str> {
    match std::env::consts::ARCH {
        _ if !cfg!(all(target_os = "linux", target_env = "gnu")) => None,
        "x86_64" => Some("x86_64-unknown-linux-gnu"),
        "aarch64" => Some("aarch64-unknown-linux-gnu"),
        _ => None,
    }
}

fn options(finds_leaks: bool) -> String {
    format!("{OPTIONS}:detect_leaks={}", u8::from(finds_leaks))
}

/// Checks that the sanitizer works on this machine, and returns whether it also detects leaks.
fn try_canary(root: &Path, folder: &Path) -> Result<bool> {
    let source = folder.join("canary.rs");
    let program = folder.join("canary");
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    std::fs::write(&source, CANARY).with_context(|| source.display().to_string())?;
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root).args(["--edition=2024", RUST_FLAGS, "-o"]).args([&program, &source]);
    let built = rustc.env("RUSTC_BOOTSTRAP", "1").output().context("cannot start `rustc`")?;
    ensure!(built.status.success(), "the canary does not compile: {}", text(&built));

    let sings = |argument: &str, finds_leaks: bool| {
        let mut canary = Command::new(&program);
        canary.arg(argument).env("ASAN_OPTIONS", options(finds_leaks));
        canary.output().context("cannot start the canary")
    };
    let healthy = sings("nothing", false)?;
    ensure!(healthy.status.success(), "the canary fails without a bug: {}", text(&healthy));
    let poisoned = sings("use-after-free", false)?;
    ensure!(
        text(&poisoned).contains("heap-use-after-free"),
        "the sanitizer does not detect a use after free: {}",
        text(&poisoned)
    );
    Ok(text(&sings("leak", true)?).contains("detected memory leaks"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
