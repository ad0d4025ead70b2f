//! `@warren/client` as others install it: `web/client/dist`.

use std::fs;

use anyhow::{Context, Result};

use super::{Places, succeed};
use crate::web::inputs::files_below;

/// What a bundler of the user's sees: the worker finds the module and its wasm beside itself.
const MODULE: &str = "./wasm/replica.js";

/// Makes `dist` anew: modules, types, and the wasm.
pub(super) fn build(places: &Places) -> Result<()> {
    let dist = places.dist();
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("removing {}", dist.display()))?;
    }
    let mut esbuild = places.npm("esbuild");
    esbuild.args(["index", "react", "worker"].map(|name| format!("client/src/{name}.ts")));
    esbuild.args(["--bundle", "--splitting", "--format=esm", "--outdir=client/dist"]);
    esbuild.args(["--chunk-names=chunk-[hash]", "--target=es2023", "--log-level=warning"]);
    esbuild.args(["--external:react", &format!("--external:{MODULE}")]);
    succeed(&mut esbuild)?;
    succeed(places.npm("tsc").args(["-p", "client"]))?;
    let wasm = dist.join("wasm");
    fs::create_dir_all(&wasm)?;
    for file in files_below(&places.out.join("wasm"))? {
        fs::copy(&file, wasm.join(file.file_name().context("a file has a name")?))?;
    }
    Ok(())
}
