//! The directory of a file.

use std::fs::File;
use std::path::Path;

use crate::error::{Result, io};

/// The directory that holds a file: `.` for a name alone.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns when the disk has the names in a directory: those of files that were made, renamed or
/// removed.
pub fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io(directory))
}
