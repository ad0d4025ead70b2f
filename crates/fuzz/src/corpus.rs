//! The kept inputs: `corpora/NAME.zip`, one entry each, and `corpora/found/NAME-…`, which broke the
//! target once.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::FuzzTarget;

/// The seeds, what broke the target once, and what reaches all of it.
pub fn inputs(target: &FuzzTarget) -> Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    inputs.extend(found(target)?);
    let path = path(target.name);
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(inputs),
        file => file.with_context(|| path.display().to_string())?,
    };
    let mut archive = ZipArchive::new(file).with_context(|| path.display().to_string())?;
    for place in 0..archive.len() {
        let mut input = Vec::new();
        archive.by_index(place)?.read_to_end(&mut input)?;
        inputs.push(input);
    }
    Ok(inputs)
}

fn found(target: &FuzzTarget) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder().join("found")).context("corpora/found")? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.strip_prefix(target.name).is_some_and(|rest| rest.starts_with('-')) {
            found.push(fs::read(&path)?);
        }
    }
    Ok(found)
}

/// Writes [`inputs`] into a folder, a file each.
pub fn unpack(target: &FuzzTarget, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (place, input) in inputs(target)?.iter().enumerate() {
        fs::write(folder.join(format!("kept-{place}")), input)?;
    }
    Ok(())
}

/// Keeps the inputs of a folder: the same ones make the same archive.
pub fn pack(target: &FuzzTarget, folder: &Path) -> Result<usize> {
    let known = [(target.seeds)(), found(target)?].concat();
    let mut inputs = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        inputs.push(fs::read(file?.path())?);
    }
    inputs.retain(|input| !known.contains(input));
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let path = path(target.name);
    let mut archive = ZipWriter::new(File::create(&path).context("corpora")?);
    for (place, input) in inputs.iter().enumerate() {
        archive.start_file(format!("{place}"), options)?;
        archive.write_all(input)?;
    }
    archive.finish()?;
    Ok(inputs.len())
}

fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.zip"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora")
}
