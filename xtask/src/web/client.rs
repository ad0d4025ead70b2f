//! Builds `@warren/client` as users install it: `web/client/dist`, and npm's archive of it.
//!
//! # Invariants
//! - The worker is one file and includes the module that drives the wasm: bundlers, and people who
//!   move it, need no other file.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::web_paths::WebPaths;
use crate::programs::succeed;

/// The file that the worker fetches.
const WASM: &str = "replica_bg.wasm";

/// Builds `dist` from scratch: modules, types and the wasm, all in one directory; and its archive
/// in `target/web`.
pub(super) fn build(places: &WebPaths) -> Result<()> {
    let dist = places.dist();
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    let mut esbuild = places.npm("esbuild");
    esbuild.args(["index", "react", "worker"].map(|name| format!("client/src/{name}.ts")));
    esbuild.args(["--bundle", "--format=esm", "--outdir=client/dist"]);
    esbuild.args(["--target=es2023", "--log-level=warning"]);
    succeed(esbuild.arg("--external:react"))?;
    succeed(places.npm("tsc").args(["-p", "client"]))?;
    let wasm = places.out.join("wasm").join(WASM);
    fs::copy(&wasm, dist.join(WASM)).with_context(|| format!("cannot copy {}", wasm.display()))?;
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(places.root.join(license), dist.join(license)).context(license)?;
    }
    let mut npm = Command::new("npm");
    npm.current_dir(places.web.join("client")).args(["pack", "--loglevel=error"]);
    succeed(npm.arg("--pack-destination").arg(&places.out).stdout(Stdio::null()))
}
