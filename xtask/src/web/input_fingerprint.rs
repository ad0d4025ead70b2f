//! Computes a fingerprint of all inputs of the pages: if it is known, the pages are already built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use blake3::Hasher;

use super::web_paths::WebPaths;

/// The files and directories of the inputs, from the root. The code of xtask that processes them is
/// an input, too.
const SOURCES: &[&str] = &[
    "target/web/wasm",
    "web/admin",
    "web/client/README.md",
    "web/client/package.json",
    "web/client/src",
    "web/client/tsconfig.json",
    "web/package-lock.json",
    "web/plan",
    "web/shared",
    "web/tsconfig.json",
    "xtask/src/web",
];

/// Hashes all names and contents of the inputs.
pub(super) fn fingerprint(places: &WebPaths) -> Result<String> {
    let mut hasher = Hasher::new();
    for source in SOURCES {
        for file in files_below(&places.root.join(source))? {
            let bytes =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            hasher.update(file.as_os_str().as_encoded_bytes());
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

pub(super) fn is_up_to_date(stamp: &Path, fingerprint: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|known| known == fingerprint)
}

pub(super) fn record_fingerprint(stamp: &Path, fingerprint: &str) -> Result<()> {
    fs::write(stamp, fingerprint).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the files of a directory, at any depth, in order; the path itself if it is a file; none
/// if it does not exist.
pub(super) fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut below: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    below.sort();
    let files: Result<Vec<Vec<PathBuf>>> = below.iter().map(|path| files_below(path)).collect();
    Ok(files?.concat())
}

pub(super) fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_at_any_depth_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("b/c")).unwrap();
        for name in ["b/c/2", "a", "b/1"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let found = files_below(folder).unwrap();
        let names: Vec<_> = found.iter().map(|file| file.strip_prefix(folder).unwrap()).collect();
        assert_eq!(names, ["a", "b/1", "b/c/2"].map(Path::new));
        assert_eq!(files_below(&folder.join("a")).unwrap(), [folder.join("a")]);
        assert!(files_below(&folder.join("gone")).unwrap().is_empty());
    }
}
