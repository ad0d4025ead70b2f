//! Writes the Brotli form of each file that it makes smaller, and prints a table of the sizes.
//!
//! # Invariants
//! - The compressed wasm has at most [`WASM_BROTLI_BYTES_MAX`] bytes.
//! - Bytes are compressed once: the compressed forms are kept by the digest of their input.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::input_fingerprint::{files_below, has_extension};
use crate::programs::succeed;
use crate::terminal::print_line;

/// The size limit of the compressed wasm: a megabyte, the goal for the first load (issue 7).
const WASM_BROTLI_BYTES_MAX: u64 = 1_000_000;

/// The script that compresses, next to this file.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/brotli.mjs");

/// Extensions of files that are already compressed.
const PACKED: &[&str] = &["png", "woff2"];

/// A file of the site.
struct SiteFile {
    path: PathBuf,
    bytes_count: u64,
    /// The path of the kept Brotli form, if the file may have one.
    kept: Option<PathBuf>,
}

/// Compresses the files below the directory, and prints the sizes.
pub(super) fn run(site: &Path, kept: &Path) -> Result<()> {
    let mut files = Vec::new();
    for path in files_below(site)? {
        let bytes = fs::read(&path)?;
        let is_packed = PACKED.iter().any(|extension| has_extension(&path, extension));
        let form = kept.join(&*blake3::hash(&bytes).to_hex());
        let kept = (!is_packed).then_some(form);
        files.push(SiteFile { path, bytes_count: bytes.len() as u64, kept });
    }
    fs::create_dir_all(kept)?;
    compress(&files)?;
    let mut table = format!("{:<44} {:>10} {:>10}\n", "", "bytes", "Brotli");
    let mut sum = (0, 0);
    for file in &files {
        let name = file.path.strip_prefix(site)?.display().to_string();
        let sizes = (file.bytes_count, file.put_beside()?);
        if has_extension(&file.path, "wasm") {
            let is_small = sizes.1 <= WASM_BROTLI_BYTES_MAX;
            ensure!(is_small, "{name}: {} bytes, the maximum is {WASM_BROTLI_BYTES_MAX}", sizes.1);
        }
        writeln!(table, "{name:<44} {:>10} {:>10}", sizes.0, sizes.1)?;
        sum = (sum.0 + sizes.0, sum.1 + sizes.1);
    }
    write!(table, "{:<44} {:>10} {:>10}", "total", sum.0, sum.1)?;
    print_line(table)
}

/// Creates the compressed forms that do not exist yet.
fn compress(files: &[SiteFile]) -> Result<()> {
    let forms = files.iter().filter_map(|file| Some((&file.path, file.kept.as_ref()?)));
    let missing: Vec<_> = forms.filter(|(_, kept)| !kept.is_file()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut node = Command::new("node");
    succeed(node.arg(SCRIPT).args(missing.into_iter().flat_map(|(from, to)| [from, to])))
}

impl SiteFile {
    /// Copies the compressed form next to the file if it is smaller, and returns the number of
    /// bytes that are sent.
    fn put_beside(&self) -> Result<u64> {
        let Some(kept) = &self.kept else { return Ok(self.bytes_count) };
        let brotli_count = fs::metadata(kept)?.len();
        if brotli_count >= self.bytes_count {
            return Ok(self.bytes_count);
        }
        let mut beside = self.path.as_os_str().to_owned();
        beside.push(".br");
        fs::copy(kept, &beside)
            .with_context(|| format!("cannot write {}", Path::new(&beside).display()))?;
        Ok(brotli_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decompresses a file like a browser.
    fn decompress(brotli: &Path) -> String {
        let script =
            "process.stdout.write(zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])))";
        let node = Command::new("node").args(["-e", script]).arg(brotli).output().unwrap();
        assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
        String::from_utf8(node.stdout).unwrap()
    }

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
        assert_eq!(decompress(&site.join("a.js.br")), text);
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
