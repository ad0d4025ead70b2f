//! `@warren/client` as others install it: `web/client/dist`.

use std::fs;

use anyhow::{Context, Result};

use super::inputs::files_below;
use super::{Places, succeed};

/// Makes `dist` anew: modules, types, and the wasm with its module, all beside each other.
pub(super) fn build(places: &Places) -> Result<()> {
    let dist = places.dist();
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("removing {}", dist.display()))?;
    }
    let mut esbuild = places.npm("esbuild");
    esbuild.args(["index", "react", "worker"].map(|name| format!("client/src/{name}.ts")));
    esbuild.args(["--bundle", "--splitting", "--format=esm", "--outdir=client/dist"]);
    esbuild.args(["--chunk-names=chunk-[hash]", "--target=es2023", "--log-level=warning"]);
    succeed(esbuild.arg("--external:react"))?;
    succeed(places.npm("tsc").args(["-p", "client"]))?;
    let wasm = places.out.join("wasm");
    for file in files_below(&wasm)? {
        let copy = dist.join(file.strip_prefix(&wasm)?);
        fs::create_dir_all(copy.parent().context("a file has a folder")?)?;
        fs::copy(&file, copy)?;
    }
    Ok(())
}
