//! Runs `cargo xtask web [--check]`: builds the pages that the binary embeds, from the sources in
//! `web/` and the replica's crates.
//!
//! ```text
//! replica-wasm ─► target/web/wasm ─┬─► web/client/dist ─► target/web/warren-client-VERSION.tgz
//! web/client/src ──────────────────┘        │
//! web/plan, web/admin ──────────────────────┴─► target/web/site ──┬─► crates/web-assets
//! @actual-app/web ────────────────────────────► target/web/actual ┘
//! ```
//!
//! # Invariants
//! - Below `target/web/site/assets` a file's name changes with its contents, and with those of all
//!   files that it names.
//! - Unchanged inputs are not built again, and an unchanged site keeps its files' times, so that it
//!   causes no recompilation.
//!
//! # Not here
//! - Installing esbuild, TypeScript and clang → `.ci/setup.sh`.

mod actual;
mod asset_names;
pub(crate) mod browser;
mod client;
mod input_fingerprint;
mod page;
mod precompress;
mod site;
pub(crate) mod wasm;
mod web_paths;

use std::path::Path;

use anyhow::{Context, Result, bail};

use self::web_paths::WebPaths;
use crate::terminal::print_line;

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<bool> {
    let places = WebPaths::new(root)?;
    match args {
        [] => build(&places).map(|()| true),
        ["--check"] => check(&places),
        _ => bail!("usage: cargo xtask web [--check]"),
    }
}

/// Builds and then checks the pages, for `cargo xtask ci web`.
pub(crate) fn build_and_check(root: &Path) -> Result<bool> {
    let places = WebPaths::new(root)?;
    build(&places)?;
    check(&places)
}

fn build(places: &WebPaths) -> Result<()> {
    wasm::build(places)?;
    let stamp = places.out.join("site.stamp");
    let inputs = input_fingerprint::fingerprint(places)?;
    if input_fingerprint::is_up_to_date(&stamp, &inputs)
        && places.out.join("site/index.html").is_file()
    {
        return print_line("web: nothing changed");
    }
    client::build(places)?;
    site::build(places)?;
    actual::build(places)?;
    input_fingerprint::record_fingerprint(&stamp, &inputs)
}

/// Checks the types; rules that no compiler checks are left to `tidy`.
fn check(places: &WebPaths) -> Result<bool> {
    let mut tsc = places.npm("tsc");
    let status = tsc.args(["-p", ".", "--noEmit"]).status().context("cannot start tsc")?;
    Ok(status.success())
}
