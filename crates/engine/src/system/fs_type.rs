//! Determines the type and the free space of the file system that contains a file.

use std::path::{Path, PathBuf};

use crate::error::{Result, io};

/// Returns the type of the file system that contains `path`, by its Linux name (`ext4`, `nfs4`, …):
/// that of the mount whose mount point is the longest prefix of the path.
pub fn fs_type(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    kind_in(&mounts, &path)
}

/// Finds the mount of a path. Of two mounts on one point, the later covers the earlier.
fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((unescape(fields.next()?), fields.next()?))
    });
    let holding = mounts.filter(|(point, _)| path.starts_with(point));
    let best = holding.max_by_key(|(point, _)| point.as_os_str().len());
    best.map(|(_, kind)| kind.to_owned())
}

/// Replaces the octal escapes in a mount point: spaces, tabs, newlines and backslashes.
fn unescape(point: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let plain = escapes.iter().fold(point.to_owned(), |text, (from, to)| text.replace(from, to));
    plain.into()
}

/// Returns the free bytes of the disk that contains a directory.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(directory).map_err(|error| io(directory)(error.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_latest_mount_point_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\nserver:/x /srv nfs4 rw 0 0\n\
                      a /srv/my\\040disk xfs rw 0 0\nb /srv/my\\040disk 9p rw 0 0\n";
        let kind = |path| kind_in(mounts, Path::new(path));
        assert_eq!(kind("/var/a.db").as_deref(), Some("ext4"));
        assert_eq!(kind("/srv/a.db").as_deref(), Some("nfs4"));
        assert_eq!(kind("/srv/my disk/a.db").as_deref(), Some("9p"));
        assert_eq!(kind("/srvx/a.db").as_deref(), Some("ext4"));
    }
}
