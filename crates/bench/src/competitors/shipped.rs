//! Contains the drivers of the lab, so that the program needs no checkout of Warren.
//!
//! # Invariants
//! - The files are those of `bench/competitors`, byte for byte, and all that the lab needs of
//!   them: a test compares.
//! - The folder for the files is named after their content, so programs of different versions do
//!   not write into each other's folders.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// Embeds files of `bench/competitors` as pairs of path and content.
macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../../bench/competitors/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "apsw-sqlite3mc/lab.py",
    "apsw-sqlite3mc/requirements.txt",
    "better-sqlite3-multiple-ciphers/lab.js",
    "better-sqlite3-multiple-ciphers/package-lock.json",
    "better-sqlite3-multiple-ciphers/package.json",
    "better-sqlite3-multiple-ciphers-11/lab.js",
    "better-sqlite3-multiple-ciphers-11/package-lock.json",
    "better-sqlite3-multiple-ciphers-11/package.json",
    "node/better-sqlite3.js",
    "node/package-lock.json",
    "node/package.json",
    "node/plan.js",
    "node/steps.js",
    "node-sqlite/lab.js",
    "node-sqlite/package-lock.json",
    "node-sqlite/package.json",
    "python/plan.py",
    "python-sqlite3/lab.py",
];

/// Returns the folder with all files, after writing those that are missing or differ.
pub(crate) fn write_out(below: &Path) -> anyhow::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    FILES.hash(&mut hasher);
    let name = format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
    let folder = below.join(name);
    for (path, text) in FILES {
        let path = folder.join(path);
        write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}

/// Writes the file completely or not at all, because another process may read it.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    match std::fs::read_to_string(path) {
        Ok(there) if there == text => return Ok(()),
        Err(error) if ![ErrorKind::NotFound, ErrorKind::InvalidData].contains(&error.kind()) => {
            return Err(error.into());
        }
        _ => {}
    }
    let folder = path.parent().context("the file has no directory")?;
    std::fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    /// Returns all files of the folders that are drivers of the lab, or shared by them.
    fn of_the_repository() -> BTreeSet<String> {
        let competitors =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/competitors"));
        let mut files = BTreeSet::new();
        for folder in fs::read_dir(competitors).unwrap().map(|entry| entry.unwrap().path()) {
            let name = folder.file_name().unwrap().to_str().unwrap();
            let is_of_the_lab = ["lab.js", "lab.py"].iter().any(|lab| folder.join(lab).is_file());
            if !is_of_the_lab && !["node", "python"].contains(&name) {
                continue;
            }
            let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
            let entries = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files.extend(
                entries.map(|entry| format!("{name}/{}", entry.file_name().to_str().unwrap())),
            );
        }
        files
    }

    #[test]
    fn every_driver_of_the_lab_is_in_the_program() {
        let shipped = FILES.iter().map(|(path, _)| (*path).to_owned());
        assert_eq!(shipped.collect::<BTreeSet<_>>(), of_the_repository());
    }

    #[test]
    fn what_is_not_there_as_it_should_be_is_written_again() {
        let cache = tempfile::tempdir().unwrap();
        let folder = write_out(cache.path()).unwrap();
        let (first, text) = FILES[0];
        let second = folder.join(FILES[1].0);
        fs::write(folder.join(first), "half").unwrap();
        let before = fs::metadata(&second).unwrap().modified().unwrap();
        assert_eq!(write_out(cache.path()).unwrap(), folder);
        assert_eq!(fs::read_to_string(folder.join(first)).unwrap(), text);
        assert_eq!(fs::metadata(&second).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read_dir(folder.join("python")).unwrap().count(), 1, "nothing beside it");
    }
}
