//! Which file this is: how a copy of a replica is told from the replica.
//!
//! Two files with one node id would give one timestamp to two changes. A file's identity is the
//! machine and the inode: `cp`, a restored backup and another machine change it; renaming, VACUUM
//! and writing do not. Where an identity changes without a copy, the only cost is one more device.

use std::path::Path;

/// An opaque text, or `None` where the system has no such thing.
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
