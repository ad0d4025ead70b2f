//! `@warren/client` as others install it: `web/client/dist`, and the archive that npm makes of it.
//!
//! # Invariants
//! - The worker is one file, with the module that drives the wasm in it: bundlers and people that
//!   put it elsewhere need to know of no other.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::web_paths::{WebPaths, succeed};

/// What the worker fetches.
const WASM: &str = "replica_bg.wasm";

/// Makes `dist` anew: modules, types and the wasm, all beside each other; and the archive of it in
/// `target/web`.
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
