//! Finds and flushes the directory of a file.

use std::fs::File;
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
