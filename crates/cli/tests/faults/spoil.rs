//! Damages files as a disk does that returns other bytes than were written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE_BYTES: u64 = 4_096;

/// The number of damaged pages: some of each table's tree and each index, if these were filled
/// together.
const SPOILT_COUNT: u64 = 16;

/// Overwrites pages in the middle of a file with noise, even while a server has it open.
pub(crate) fn spoil_middle(file: &Path) {
    let pages_count = file.metadata().unwrap().len() / PAGE_BYTES;
    let places = 0..SPOILT_COUNT * PAGE_BYTES;
    let noise: Vec<u8> = places.map(|place| (place * 7 % 251).try_into().unwrap()).collect();
    let mut dd = Command::new("dd");
    dd.arg(format!("of={}", file.display())).arg(format!("bs={PAGE_BYTES}"));
    dd.arg(format!("seek={}", pages_count / 2)).args(["conv=notrunc", "status=none"]);
    let mut child = dd.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&noise).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Returns the vaults' files below a data directory, the largest first.
pub(crate) fn vaults(data: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(data.join("vaults")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let mut vaults: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sqlite"))
        .collect();
    vaults.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
    vaults
}

/// Returns the path to which a damaged vault is quarantined.
pub(crate) fn damaged(vault: &Path) -> PathBuf {
    vault.with_extension("sqlite.damaged")
}
