//! Finds, creates and flushes the directory of a file.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Result, io};

/// Returns the directory that contains a file: `.` for a bare name.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Flushes a directory, so that the creation, renaming and removal of files in it survive a power
/// loss.
pub fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io(directory))
}

/// Creates a directory and its parents, and flushes the directories that contain them. Does not
/// fail if it exists.
pub fn create_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = directory_of(path);
    create_directory(parent)?;
    match fs::create_dir(path) {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => Err(io(path)(source)),
        _ => sync_directory(parent),
    }
}
