//! Reads how much memory is available to programs
//! (<https://docs.kernel.org/filesystems/proc.html#meminfo>).

use std::fs;
use std::path::Path;

const KIB: u64 = 1_024;

/// Returns the memory of this machine that is available now.
pub(crate) fn available_bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Checks whether the files in this directory are kept in memory.
pub(crate) fn holds(directory: &Path) -> bool {
    engine::fs_type(directory).is_some_and(|kind| ["tmpfs", "ramfs"].contains(&kind.as_str()))
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2_097_152));
        assert_eq!(parse("MemTotal: 9 kB\n"), None);
        assert!(available_bytes() > Some(0));
    }
}
