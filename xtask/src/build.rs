//! Runs `cargo xtask build`: compiles `target/quick/warren` with its pages, which `make run`
//! starts.
//!
//! # Not here
//! - The binary that is released and measured → `dist.rs`.

use std::path::Path;

use anyhow::Result;

use crate::{build_cache, cargo_artifacts, web};

pub(crate) fn run(root: &Path) -> Result<bool> {
    web::run(root, &[])?;
    // The benchmarks are left out: they are a third of the code, and the server does not need them.
    let args = ["build", "--profile", "quick", "--package", "cli", "--no-default-features"];
    cargo_artifacts::compile(root, &args)?;
    build_cache::save(root)?;
    Ok(true)
}
