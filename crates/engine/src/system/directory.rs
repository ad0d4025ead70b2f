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

/// Flushes a directory, so that files that were created, renamed or removed in it stay so after a
/// power loss.
pub fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io(directory))
}
