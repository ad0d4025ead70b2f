//! Keeps a copy of a file from before a fix, in a directory next to it: `NAME.undo-N`.
//!
//! # Invariants
//! - The copy is on the disk, and equal byte by byte, before [`save`] returns.
//! - A restore writes into the existing file: its owner, permissions and other names stay.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use engine::{remove_if_there, side_file_path};

use crate::error::{Error, Result, io};

/// The suffixes of the files that belong to a database. Its `-shm` file is created again when
/// needed.
const SUFFIXES: &[&str] = &["", "-wal", "-journal"];
/// The limit of the directory numbers.
const FOLDERS_MAX: u32 = 10_000;

/// Copies the file and its journal and WAL. Returns the directory of the copy.
pub(crate) fn save(path: &Path) -> Result<PathBuf> {
    let mut folders = (1..FOLDERS_MAX).map(|number| folder(path, number));
    let folder = folders.find(|folder| !folder.exists()).unwrap_or_else(|| folder(path, 0));
    check_room(path)?;
    DirBuilder::new().mode(0o700).create(&folder).map_err(io(&folder))?;
    let copied = SUFFIXES.iter().try_for_each(|suffix| {
        let (from, to) = (side_file_path(path, suffix), in_folder(path, &folder, suffix));
        if from.exists() { copy(&from, &to).map_err(io(&from)) } else { Ok(()) }
    });
    if copied.is_err() {
        drop(fs::remove_dir_all(&folder));
    }
    copied.map(|()| folder)
}

/// Restores the file from the copy, and removes the directory.
pub(crate) fn restore(path: &Path, folder: &Path) -> Result<()> {
    for suffix in ["-wal", "-journal", "-shm"] {
        remove_if_there(&side_file_path(path, suffix))?;
    }
    for suffix in SUFFIXES {
        let (from, to) = (in_folder(path, folder, suffix), side_file_path(path, suffix));
        if from.exists() {
            copy(&from, &to).map_err(io(&to))?;
        }
    }
    fs::remove_dir_all(folder).map_err(io(folder))
}

/// Returns the directory of the newest copy.
pub(crate) fn newest(path: &Path) -> Result<PathBuf> {
    let folders = (1..FOLDERS_MAX).map(|number| folder(path, number));
    let newest = folders.take_while(|folder| folder.exists()).last();
    newest.ok_or_else(|| Error::NoUndo(path.to_owned()))
}

fn folder(path: &Path, number: u32) -> PathBuf {
    side_file_path(path, &format!(".undo-{number}"))
}

fn in_folder(path: &Path, folder: &Path, suffix: &str) -> PathBuf {
    let name = side_file_path(path, suffix);
    folder.join(name.file_name().unwrap_or_default())
}

fn check_room(path: &Path) -> Result<()> {
    let sizes = SUFFIXES
        .iter()
        .map(|suffix| side_file_path(path, suffix).metadata().map_or(0, |it| it.len()));
    let needed: u64 = sizes.sum();
    let stat = rustix::fs::statvfs(path).map_err(|error| io(path)(error.into()))?;
    let free = stat.f_bavail * stat.f_frsize;
    if free < needed { Err(Error::NoRoom { needed, free }) } else { Ok(()) }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()?;
    if is_same(from, to)? {
        Ok(())
    } else {
        Err(io::Error::other("the copy differs from the original"))
    }
}

fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (BufReader::new(File::open(a)?), BufReader::new(File::open(b)?));
    let (mut a, mut b) = (a.bytes(), b.bytes());
    loop {
        match (a.next().transpose()?, b.next().transpose()?) {
            (None, None) => return Ok(true),
            (left, right) if left == right => {}
            _ => return Ok(false),
        }
    }
}
