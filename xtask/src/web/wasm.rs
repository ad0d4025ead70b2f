//! The replica for browsers: compiled, and made a module by the library of wasm-bindgen's tool.
//!
//! # Invariants
//! - The library has the version of the `wasm-bindgen` that the crate is compiled with; it refuses
//!   any other.

use std::fs;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use wasm_bindgen_cli_support::Bindgen;

use super::inputs::has_extension;
use super::{Places, inputs};

const PACKAGE: &str = "replica-wasm";
/// The module is `replica.js`, with `replica_bg.wasm` beside it.
const NAME: &str = "replica";

/// Makes `target/web/wasm`.
pub(super) fn build(places: &Places) -> Result<()> {
    let compiled = compile(places)?;
    let bytes = fs::read(&compiled).with_context(|| format!("reading {}", compiled.display()))?;
    let stamp = places.out.join("wasm.stamp");
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let folder = places.out.join("wasm");
    if inputs::are_known(&stamp, &digest) && folder.is_dir() {
        return Ok(());
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_bytes(NAME, bytes).typescript(false).omit_default_module_path(true);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.web(true).and_then(|bindgen| bindgen.generate(&folder)).context("wasm-bindgen")?;
    inputs::remember(&stamp, &digest)
}

/// Returns the file that cargo made, wherever its target directory is.
fn compile(places: &Places) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&places.root).stdout(Stdio::piped());
    cargo.args(["build", "--locked", "--profile", "wasm", "--target", "wasm32-unknown-unknown"]);
    cargo.args(["--package", PACKAGE, "--message-format", "json-render-diagnostics"]);
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let messages = std::io::BufReader::new(child.stdout.take().context("stdout is piped")?);
    let mut made = None;
    for line in messages.lines() {
        let message: Value = serde_json::from_str(&line?).context("cargo's messages")?;
        let files = message["filenames"].as_array().into_iter().flatten();
        let mut files = files.filter_map(Value::as_str).map(PathBuf::from);
        made = files.find(|file| has_extension(file, "wasm")).or(made);
    }
    ensure!(child.wait()?.success(), "compiling {PACKAGE} failed");
    made.with_context(|| format!("cargo made no wasm of {PACKAGE}"))
}
