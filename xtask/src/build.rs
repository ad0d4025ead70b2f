//! `cargo xtask build`: what `make run` starts, `target/quick/warren` with its pages.
//!
//! # Not here
//! - What is shipped and measured: `cargo build --profile dist`.

use std::path::Path;

use anyhow::Result;

use crate::{build_cache, cargo_artifacts, web};

pub(crate) fn run(root: &Path) -> Result<bool> {
    web::run(root, &[])?;
    // Without the benchmarks: they are a third of the code, and no part of serving.
    let args = ["build", "--profile", "quick", "--package", "cli", "--no-default-features"];
    cargo_artifacts::compile(root, &args)?;
    build_cache::save(root)?;
    Ok(true)
}
