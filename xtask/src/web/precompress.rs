//! The Brotli form beside each file that it makes smaller, and the table of the sizes.
//!
//! # Invariants
//! - The wasm over the wire stays within [`WASM_BROTLI_BYTES_MAX`].
//! - Bytes are compressed once: forms are kept by the digest of what they are made from.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use brotli::CompressorWriter;

use super::inputs::{files_below, has_extension};
use crate::say;

/// A megabyte: the aim for the first load (issue 7).
const WASM_BROTLI_BYTES_MAX: u64 = 1_000_000;

/// The best, and the largest window that every browser takes.
const QUALITY: u32 = 11;
const WINDOW_BITS: u32 = 22;
const BUFFER_BYTES: usize = 64 << 10;

/// Packed already.
const PACKED: &[&str] = &["png", "woff2"];

/// Compresses what lies below the folder, and prints the sizes.
pub(super) fn run(site: &Path, kept: &Path) -> Result<()> {
    let mut table = format!("{:<44} {:>10} {:>10}\n", "", "bytes", "Brotli");
    let mut sum = (0, 0);
    for file in files_below(site)? {
        let bytes = fs::read(&file)?;
        let name = file.strip_prefix(site)?.display().to_string();
        let sizes = (bytes.len() as u64, compress(&file, &bytes, kept)?);
        if has_extension(&file, "wasm") {
            let is_small = sizes.1 <= WASM_BROTLI_BYTES_MAX;
            ensure!(is_small, "{name}: {} bytes, {WASM_BROTLI_BYTES_MAX} at most", sizes.1);
        }
        writeln!(table, "{name:<44} {:>10} {:>10}", sizes.0, sizes.1)?;
        sum = (sum.0 + sizes.0, sum.1 + sizes.1);
    }
    write!(table, "{:<44} {:>10} {:>10}", "together", sum.0, sum.1)?;
    say(table)
}

/// Returns how many bytes go over the wire.
fn compress(file: &Path, bytes: &[u8], kept: &Path) -> Result<u64> {
    let length = bytes.len() as u64;
    if PACKED.iter().any(|extension| has_extension(file, extension)) {
        return Ok(length);
    }
    fs::create_dir_all(kept)?;
    let known = kept.join(&*blake3::hash(bytes).to_hex());
    if !known.is_file() {
        let mut writer = CompressorWriter::new(Vec::new(), BUFFER_BYTES, QUALITY, WINDOW_BITS);
        writer.write_all(bytes)?;
        let part = known.with_extension("part");
        fs::write(&part, writer.into_inner())?;
        fs::rename(&part, &known)?;
    }
    let brotli_length = fs::metadata(&known)?.len();
    if brotli_length >= length {
        return Ok(length);
    }
    let mut beside = file.as_os_str().to_owned();
    beside.push(".br");
    fs::copy(&known, &beside)
        .with_context(|| format!("writing {}", Path::new(&beside).display()))?;
    Ok(brotli_length)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_gets_smaller_has_a_form_that_gives_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("site");
        fs::create_dir(&site).unwrap();
        let text = "again and ".repeat(1_000);
        for (name, bytes) in [("a.js", text.as_str()), ("b.txt", "x"), ("c.png", &text)] {
            fs::write(site.join(name), bytes).unwrap();
        }
        run(&site, &folder.path().join("kept")).unwrap();
        let brotli = fs::read(site.join("a.js.br")).unwrap();
        let mut plain = String::new();
        brotli::Decompressor::new(&brotli[..], 4_096).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, text);
        assert!(!site.join("b.txt.br").exists(), "one byte does not get smaller");
        assert!(!site.join("c.png.br").exists());
    }

    #[test]
    fn a_wasm_that_is_too_large_over_the_wire_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (site, kept) = (folder.path().join("site"), folder.path().join("kept"));
        fs::create_dir_all(&site).unwrap();
        fs::create_dir_all(&kept).unwrap();
        let bytes = vec![7; 1_000_002];
        fs::write(site.join("a.wasm"), &bytes).unwrap();
        let form = kept.join(&*blake3::hash(&bytes).to_hex());
        fs::write(&form, &bytes[1..]).unwrap();
        assert!(run(&site, &kept).is_err());
        fs::write(&form, &bytes[2..]).unwrap();
        assert!(run(&site, &kept).is_ok());
    }
}
