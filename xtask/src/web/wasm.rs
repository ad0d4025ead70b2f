//! Compiles the replica for browsers, and builds a module from it with the library of
//! wasm-bindgen's tool.
//!
//! # Invariants
//! - The library has the same version as the `wasm-bindgen` that the crate is compiled with; it
//!   refuses any other.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::input_fingerprint::{self, has_extension};
use super::web_paths::WebPaths;
use crate::cargo_artifacts;

const PACKAGE: &str = "replica-wasm";
/// The package with the pure crates that it uses, which must also build for browsers without it.
const PACKAGES: [&str; 6] = ["-p", "crdt", "-p", "protocol", "-p", PACKAGE];
/// The name of the module: `replica.js`, with `replica_bg.wasm` next to it.
const NAME: &str = "replica";

/// Builds the directory `target/web/wasm`.
pub(super) fn build(places: &WebPaths) -> Result<()> {
    let compiled = compile(&places.root)?;
    let bytes =
        fs::read(&compiled).with_context(|| format!("cannot read {}", compiled.display()))?;
    let stamp = places.out.join("wasm.stamp");
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let folder = places.out.join("wasm");
    if input_fingerprint::is_up_to_date(&stamp, &digest) && folder.is_dir() {
        return Ok(());
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_bytes(NAME, bytes).typescript(false).omit_default_module_path(true);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.web(true).and_then(|bindgen| bindgen.generate(&folder)).context("wasm-bindgen")?;
    input_fingerprint::record_fingerprint(&stamp, &digest)
}

/// Returns the file that cargo built, in any target directory.
pub(crate) fn compile(root: &Path) -> Result<PathBuf> {
    let target = ["build", "--profile", "wasm", "--target", "wasm32-unknown-unknown"];
    let made = cargo_artifacts::compile(root, &[&target[..], &PACKAGES].concat())?;
    let mut files = made.into_iter().map(|artifact| artifact.path);
    let wasm = files.find(|file| has_extension(file, "wasm"));
    wasm.with_context(|| format!("cargo did not build wasm for {PACKAGE}"))
}
