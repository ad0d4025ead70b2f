//! Which other processes have a database open, as Linux tells in `/proc`.
//!
//! A process that belongs to another user shows its files to root alone; so "nobody" means: nobody
//! that this user can see.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The bytes of the WAL index that readers lock, one each of five:
/// <https://sqlite.org/walformat.html#locks>. Before them lie those of the writer (120), of
/// checkpoints and of recovery.
const READ_LOCKS: std::ops::RangeInclusive<u64> = 123..=127;
const WRITE_LOCK: std::ops::RangeInclusive<u64> = 120..=120;

/// A process that has a database open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    /// What it is called; empty if that cannot be seen.
    pub(crate) program: String,
    /// It reads a snapshot just now: the WAL cannot be started anew.
    pub(crate) reads: bool,
    /// It has a transaction open that writes.
    pub(crate) writes: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.program)?;
        match (self.writes, self.reads) {
            (true, _) => f.write_str(", which writes"),
            (_, true) => f.write_str(", which reads"),
            _ => Ok(()),
        }
    }
}

impl Holder {
    pub(crate) fn to_json(&self) -> Value {
        let Self { pid, program, reads, writes } = self;
        json!({"pid": pid, "program": program, "reads": reads, "writes": writes})
    }
}

/// The device and the inode number.
type Identity = (u64, u64);

/// All but this one.
pub(crate) fn holders(database: &Path) -> Vec<Holder> {
    let Some(file) = identity(database) else { return Vec::new() };
    let mut index = database.as_os_str().to_owned();
    index.push("-shm");
    let index = identity(Path::new(&index));
    let locks = Lock::all();
    let own = std::process::id();
    let pids = entries("/proc").filter_map(|entry| entry.file_name()?.to_str()?.parse().ok());
    let pids = pids.filter(|pid| *pid != own);
    let has_it = |pid: &u32| {
        let mut files = entries(&format!("/proc/{pid}/fd")).filter_map(|entry| identity(&entry));
        files.any(|other| other == file || Some(other) == index)
    };
    let inode = index.map(|(_, inode)| inode);
    let holds = |pid, bytes: &std::ops::RangeInclusive<u64>| {
        locks
            .iter()
            .any(|lock| lock.pid == pid && Some(lock.inode) == inode && bytes.contains(&lock.first))
    };
    let holder = |pid| Holder {
        pid,
        program: fs::read_to_string(format!("/proc/{pid}/comm"))
            .map_or(String::new(), |name| name.trim().to_owned()),
        reads: holds(pid, &READ_LOCKS),
        writes: holds(pid, &WRITE_LOCK),
    };
    // By process, each once.
    pids.filter(has_it)
        .map(|pid| (pid, holder(pid)))
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .collect()
}

/// A line of `/proc/locks`.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: u32,
    inode: u64,
    /// The first byte that is locked.
    first: u64,
}

impl Lock {
    fn all() -> Vec<Self> {
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().filter_map(Self::parse).collect()
    }

    /// `1: POSIX  ADVISORY  READ 570 00:1b:93224 124 124`; a line with `->` waits for the one before.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "POSIX" {
            return None;
        }
        let mut words = words.skip(2);
        let pid = words.next()?.parse().ok()?;
        let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
        Some(Self { pid, inode, first: words.next()?.parse().ok()? })
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn entries(directory: &str) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_read_from_its_line() {
        let line = "5: POSIX  ADVISORY  READ 21513 fe:00:11084177 124 124";
        let lock = Lock { pid: 21_513, inode: 11_084_177, first: 124 };
        assert_eq!(Lock::parse(line), Some(lock));
        for other in [
            "6: FLOCK  ADVISORY  WRITE 21513 fe:00:11084593 0 EOF",
            "6: -> POSIX  ADVISORY  WRITE 21513 fe:00:11084593 0 0",
            "",
        ] {
            assert_eq!(Lock::parse(other), None, "{other}");
        }
    }
}
