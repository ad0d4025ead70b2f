//! Identifies a file, so that a copy of a replica can be told from the replica.
//!
//! Two files with one node id would give one timestamp to two changes. A file's identity is the
//! machine and the inode: `cp`, a restored backup and another machine change it; renaming, VACUUM
//! and writing do not. If an identity changes without a copy, the only cost is one more device.

use std::path::Path;

/// Returns the file's identity as an opaque text, or `None` if the system has no inodes.
pub(crate) fn file_identity(path: &Path) -> Option<String> {
    let inode = inode(path)?;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    Some(format!("{}:{inode}", machine.trim()))
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(path).ok()?.ino())
}

#[cfg(not(unix))]
fn inode(_path: &Path) -> Option<u64> {
    None
}
