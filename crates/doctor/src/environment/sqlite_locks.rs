//! Reads which process holds which lock on a file, from Linux's `/proc/locks` and `/proc/PID/fd`.
//!
//! SQLite locks single bytes: of the main file PENDING (0x40000000), RESERVED (the next) and SHARED
//! (the 510 after it; all of them locked for writing is EXCLUSIVE); of the `-shm` file WRITE (120),
//! CKPT, RECOVER and five read marks (<https://sqlite.org/lockingv3.html>,
//! <https://sqlite.org/walformat.html#wal_locks>, `os_unix.c`).
//!
//! # Invariants
//! - Only files of `/proc` are opened: closing a descriptor of a database would drop the locks that
//!   another connection of this process has on it.
//!
//! # Not here
//! - Locks over a network: a machine does not see the locks of another.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

const PENDING_BYTE: u64 = 0x4000_0000;
const RESERVED_BYTE: u64 = PENDING_BYTE + 1;
const SHARED_FIRST: u64 = PENDING_BYTE + 2;
const SHARED_LAST: u64 = SHARED_FIRST + 509;
const WAL_WRITE_BYTE: u64 = 120;
const WAL_READ_BYTE: u64 = 123;
/// The byte on which every connection to a `-shm` file holds a shared lock as long as it is open.
const DEAD_MAN_BYTE: u64 = 128;

/// A lock of SQLite on a database or its `-shm` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SqliteLock {
    /// The holder reads, in a rollback-journal database.
    Shared,
    /// The holder intends to write.
    Reserved,
    /// The holder waits until readers finish, in order to write; new readers are refused.
    Pending,
    /// The holder writes to the database.
    Exclusive,
    /// The holder writes to the WAL.
    WalWrite,
    /// The holder moves the WAL into the file.
    WalCheckpoint,
    /// The holder rebuilds the WAL's index.
    WalRecover,
    /// The holder reads, with the snapshot of this read mark (0 to 4).
    WalRead(u8),
}

impl SqliteLock {
    /// Checks whether the lock prevents others from writing, or even from reading.
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(
            self,
            Self::Reserved | Self::Pending | Self::Exclusive | Self::WalWrite | Self::WalRecover
        )
    }

    /// Checks whether the holder of the lock sees one snapshot of the database.
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Self::Shared | Self::WalRead(_))
    }

    /// Returns the name of the lock in SQLite's documentation.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Shared => "SHARED".to_owned(),
            Self::Reserved => "RESERVED".to_owned(),
            Self::Pending => "PENDING".to_owned(),
            Self::Exclusive => "EXCLUSIVE".to_owned(),
            Self::WalWrite => "WAL_WRITE_LOCK".to_owned(),
            Self::WalCheckpoint => "WAL_CKPT_LOCK".to_owned(),
            Self::WalRecover => "WAL_RECOVER_LOCK".to_owned(),
            Self::WalRead(mark) => format!("WAL_READ_LOCK({mark})"),
        }
    }
}

/// A lock that a process holds. `pid` is 0 or less where the kernel names no process: for a lock of
/// an open file description, or a process of another container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldLock {
    pub(crate) pid: i32,
    pub(crate) lock: SqliteLock,
}

/// A file as `/proc/locks` identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockedInode {
    device: (u64, u64),
    number: u64,
}

impl LockedInode {
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let device = metadata.dev();
        let device = (rustix::fs::major(device).into(), rustix::fs::minor(device).into());
        Some(Self { device, number: metadata.ino() })
    }
}

/// Returns the current locks on a database and its `-shm` file, except those of this process.
/// `users` are processes that have the database open.
pub(crate) fn held_locks(
    main: LockedInode,
    shm: Option<LockedInode>,
    users: &[i32],
) -> BTreeSet<HeldLock> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let held = locks.lines().filter_map(parse);
    let of_sqlite = held.flat_map(|line| {
        let locks = if line.is_on(main, users) {
            locks_of_main(&line)
        } else if shm.is_some_and(|shm| line.is_on(shm, users)) {
            locks_of_shm(&line)
        } else {
            Vec::new()
        };
        locks.into_iter().map(move |lock| HeldLock { pid: line.pid, lock })
    });
    of_sqlite.filter(|held| held.pid != own).collect()
}

/// Checks whether any connection has this `-shm` file open.
pub(crate) fn is_connected(shm: Option<LockedInode>, users: &[i32]) -> bool {
    let Some(shm) = shm else { return false };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut lines = locks.lines().filter_map(parse);
    lines.any(|line| line.is_on(shm, users) && line.covers(DEAD_MAN_BYTE))
}

struct ProcLocksLine {
    pid: i32,
    is_write: bool,
    inode: LockedInode,
    first: u64,
    last: u64,
}

/// Parses a line such as `1: POSIX  ADVISORY  WRITE 1234 fe:00:131 120 120`. A line with `->` waits
/// for the lock above it and is not a held lock.
fn parse(line: &str) -> Option<ProcLocksLine> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, kind, _, access, pid, file, first, last] = fields[..] else { return None };
    if !["POSIX", "OFDLCK"].contains(&kind) {
        return None;
    }
    let mut file = file.split(':');
    let major = u64::from_str_radix(file.next()?, 16).ok()?;
    let minor = u64::from_str_radix(file.next()?, 16).ok()?;
    Some(ProcLocksLine {
        pid: pid.parse().ok()?,
        is_write: access == "WRITE",
        inode: LockedInode { device: (major, minor), number: file.next()?.parse().ok()? },
        first: first.parse().ok()?,
        last: if last == "EOF" { u64::MAX } else { last.parse().ok()? },
    })
}

impl ProcLocksLine {
    /// Checks whether the lock is on this file. Overlays and btrfs report different devices for a
    /// file and its locks. In this case the process must be one that has the database open.
    fn is_on(&self, inode: LockedInode, users: &[i32]) -> bool {
        let is_sure = self.inode.device == inode.device || users.contains(&self.pid);
        self.inode.number == inode.number && is_sure
    }

    fn covers(&self, byte: u64) -> bool {
        (self.first..=self.last).contains(&byte)
    }
}

fn locks_of_main(line: &ProcLocksLine) -> Vec<SqliteLock> {
    let has_shared = line.first <= SHARED_LAST && line.last >= SHARED_FIRST;
    match line.is_write {
        true if has_shared => vec![SqliteLock::Exclusive],
        true if line.covers(PENDING_BYTE) => vec![SqliteLock::Pending],
        true if line.covers(RESERVED_BYTE) => vec![SqliteLock::Reserved],
        false if has_shared => vec![SqliteLock::Shared],
        _ => Vec::new(),
    }
}

fn locks_of_shm(line: &ProcLocksLine) -> Vec<SqliteLock> {
    let bytes = (WAL_WRITE_BYTE..DEAD_MAN_BYTE).filter(|byte| line.covers(*byte));
    let lock = |byte: u64| match byte - WAL_WRITE_BYTE {
        0 => SqliteLock::WalWrite,
        1 => SqliteLock::WalCheckpoint,
        2 => SqliteLock::WalRecover,
        offset => SqliteLock::WalRead(u8::try_from(offset - 3).expect("there are five")),
    };
    bytes.filter(|byte| line.is_write || *byte >= WAL_READ_BYTE).map(lock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expected: &[(i32, &str)]) {
        let lines = lines.lines().filter_map(parse);
        let locks = lines.flat_map(|line| {
            let is_main = line.inode.number == 131;
            let locks = if is_main { locks_of_main(&line) } else { locks_of_shm(&line) };
            locks.into_iter().map(move |lock| (line.pid, lock.name()))
        });
        let locks: Vec<(i32, String)> = locks.collect();
        let locks: Vec<(i32, &str)> = locks.iter().map(|(pid, name)| (*pid, &**name)).collect();
        assert_eq!(locks, expected);
    }

    #[test]
    fn bytes_of_the_main_file_are_locks() {
        check("1: POSIX  ADVISORY  READ 12 fe:00:131 1073741826 1073742335", &[(12, "SHARED")]);
        check(
            "1: POSIX  ADVISORY  WRITE 12 fe:00:131 1073741825 1073741825\n\
             2: POSIX  ADVISORY  READ 12 fe:00:131 1073741826 1073742335",
            &[(12, "RESERVED"), (12, "SHARED")],
        );
        check("1: POSIX  ADVISORY  WRITE 12 fe:00:131 1073741824 1073742335", &[(12, "EXCLUSIVE")]);
        check("1: OFDLCK ADVISORY  WRITE -1 fe:00:131 1073741824 1073741824", &[(-1, "PENDING")]);
        check("1: FLOCK  ADVISORY  WRITE 12 fe:00:131 0 EOF", &[]);
        check("1: -> POSIX  ADVISORY  WRITE 12 fe:00:131 1073741825 1073741825", &[]);
    }

    #[test]
    fn a_lock_on_another_device_counts_if_its_process_has_the_file_open() {
        let line = parse("1: POSIX  ADVISORY  WRITE 12 00:2a:131 1073741825 1073741825").unwrap();
        let inode = |major, number| LockedInode { device: (major, 0x2a), number };
        assert!(line.is_on(inode(0, 131), &[]));
        assert!(!line.is_on(inode(9, 131), &[]) && line.is_on(inode(9, 131), &[12]));
        assert!(!line.is_on(inode(0, 132), &[12]));
    }

    #[test]
    fn bytes_of_the_shm_file_are_locks() {
        check("1: POSIX  ADVISORY  WRITE 7 fe:00:132 120 120", &[(7, "WAL_WRITE_LOCK")]);
        check("1: POSIX  ADVISORY  READ 7 fe:00:132 124 124", &[(7, "WAL_READ_LOCK(1)")]);
        check("1: POSIX  ADVISORY  READ 7 fe:00:132 128 128", &[]);
    }
}
