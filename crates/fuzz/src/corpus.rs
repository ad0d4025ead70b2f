//! Reads and writes the kept inputs in `vectors/fuzz`: `NAME.zip` has those of a target, and each
//! `found/NAME-…` once broke it.
//!
//! An archive has one entry, `inputs`, so that thousands of small inputs are compressed together:
//! each is preceded by its length in 4 bytes, little-endian.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::FuzzTarget;

/// Name of the only entry of an archive.
const ENTRY: &str = "inputs";

/// Returns the inputs of a target: the seeds, those that once broke it, and those that together
/// reach all of it.
pub fn inputs(target: &FuzzTarget) -> Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    inputs.extend(breaking_inputs(target)?);
    let path = path(target.name);
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(inputs),
        file => file.with_context(|| path.display().to_string())?,
    };
    let mut archive = ZipArchive::new(file).with_context(|| path.display().to_string())?;
    let mut archived = Vec::new();
    archive.by_name(ENTRY)?.read_to_end(&mut archived)?;
    inputs.extend(split(&archived).with_context(|| path.display().to_string())?);
    Ok(inputs)
}

fn split(mut archived: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    while let Some((length, rest)) = archived.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let (input, rest) = rest.split_at_checked(length).context("an input ends too early")?;
        inputs.push(input.to_owned());
        archived = rest;
    }
    ensure!(archived.is_empty(), "a length ends too early");
    Ok(inputs)
}

fn breaking_inputs(target: &FuzzTarget) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder().join("found")).context("the folder `found`")? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.strip_prefix(target.name).is_some_and(|rest| rest.starts_with('-')) {
            found.push(fs::read(&path)?);
        }
    }
    Ok(found)
}

/// Writes [`inputs`] into a folder, one file each.
pub fn unpack(target: &FuzzTarget, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (place, input) in inputs(target)?.iter().enumerate() {
        fs::write(folder.join(format!("kept-{place}")), input)?;
    }
    Ok(())
}

/// Stores the inputs of a folder in the target's archive and returns their number. The same inputs
/// give the same archive.
pub fn pack(target: &FuzzTarget, folder: &Path) -> Result<usize> {
    let known = [(target.seeds)(), breaking_inputs(target)?].concat();
    let mut inputs = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        inputs.push(fs::read(file?.path())?);
    }
    inputs.retain(|input| !known.contains(input));
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let path = path(target.name);
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut archive = ZipWriter::new(file);
    archive.start_file(ENTRY, options)?;
    for input in &inputs {
        archive.write_all(&u32::try_from(input.len())?.to_le_bytes())?;
        archive.write_all(input)?;
    }
    archive.finish()?;
    Ok(inputs.len())
}

fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.zip"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fuzz")
}
