//! Inspects a database without opening it: the file, its companions, its disk, and the processes
//! that use it.
//!
//! # Invariants
//! - All descriptors are closed when `FileEnvironment::inspect` returns, before SQLite opens any.
//! - Nothing is created, written or deleted, and no timestamp except the last access changes.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use engine::{clock, side_file_path};

use super::processes::{self, OpenProcesses};
use super::sqlite_locks::{self, HeldLock, LockedInode, SqliteLock};
use super::temp_dirs::TempDirVariables;
use super::wal::{WalFileInfo, WalIndex, read_prefix};
use crate::error::{Error, Result, io};
use crate::file::database_header::{DatabaseHeader, HEADER_SIZE};
use crate::time_limit::{self, ExaminationBudget};

/// The time for which a lock must be held to be reported. A write transaction takes milliseconds.
const WATCH_TIME: Duration = Duration::from_secs(1);
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
/// The number of reads of the list of locks per observation, and the pause between them. The kernel
/// returns the list in parts, and skips lines if locks change between them.
const READS_PER_LOOK: (u32, Duration) = (3, Duration::ZERO);
/// The number of reads and the pause if a process is known to have the file open. Three reads in a
/// row are not enough then: while 24 processes locked and unlocked other files, 1.5 % of the reads
/// missed a held lock, and once three in a row did.
const READS_PER_LOOK_IN_USE: (u32, Duration) = (12, Duration::from_millis(2));

/// The environment of a file, seen from outside.
pub(crate) struct FileEnvironment {
    /// The path without symbolic links: SQLite's companions are next to the file itself.
    pub(crate) path: PathBuf,
    pub(crate) stamp: FileStamp,
    /// The header, or `None` for encrypted files and files that are not databases.
    pub(crate) header: Option<DatabaseHeader>,
    pub(crate) wal: Option<WalFileInfo>,
    pub(crate) has_shm: bool,
    pub(crate) journal: Option<RollbackJournal>,
    /// Whether a transaction was started and never ended: the content of the file is then
    /// unreliable.
    pub(crate) is_hot: bool,
    pub(crate) users: OpenProcesses,
    pub(crate) watch: LockWatch,
    pub(crate) file_system: Option<String>,
    /// The free space on the file's own disk, for this user.
    pub(crate) free_bytes: Option<u64>,
    pub(crate) temp: Option<TempSpace>,
    /// Whether a key was given: programs without the key must not open the file.
    pub(crate) is_keyed: bool,
    pub(crate) links_count: u64,
    /// Other names of the file in the same directory.
    pub(crate) other_names: Vec<OtherName>,
    /// Paths with a companion's name that are not regular files.
    pub(crate) irregular: Vec<PathBuf>,
}

/// Another name (hard link) of the file.
pub(crate) struct OtherName {
    pub(crate) path: PathBuf,
    /// Whether a journal or a WAL with content is next to this name.
    pub(crate) has_journal: bool,
}

/// The size and modification time of a file, which change with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
}

/// A rollback journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RollbackJournal {
    pub(crate) bytes: u64,
    /// Whether the header is not zeroed: the transaction never ended.
    pub(crate) has_header: bool,
}

/// The locks that were held during a short time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockWatch {
    /// The locks that were held at each observation.
    pub(crate) held: BTreeSet<HeldLock>,
    pub(crate) time: Duration,
    pub(crate) observations_count: u32,
    /// Whether nothing was committed during this time.
    pub(crate) nothing_committed: bool,
    pub(crate) index: Option<WalIndex>,
    /// Whether a connection has the `-shm` file open.
    pub(crate) is_connected: bool,
}

/// The directory in which SQLite stores temporary files.
#[derive(Clone, Debug)]
pub(crate) struct TempSpace {
    pub(crate) path: PathBuf,
    pub(crate) free_bytes: u64,
    /// Whether the path comes from a program's settings instead of this command's environment.
    pub(crate) is_told: bool,
}

impl FileEnvironment {
    pub(crate) fn inspect(
        path: &Path,
        is_keyed: bool,
        places: &TempDirVariables,
        budget: &ExaminationBudget,
    ) -> Result<Self> {
        let path = path.canonicalize().map_err(io(path))?;
        let metadata = fs::metadata(&path).map_err(io(&path))?;
        if !metadata.is_file() {
            return Err(Error::NotAFile(path));
        }
        if let Err(error) = rustix::fs::access(&path, rustix::fs::Access::READ_OK) {
            return Err(io(&path)(error.into()));
        }
        let header =
            read_prefix(&path, HEADER_SIZE).and_then(|bytes| DatabaseHeader::parse(&bytes));
        let directory = path.parent().unwrap_or(Path::new("/"));
        let (before, users) = (RollbackJournal::read(&path), processes::processes_with_open(&path));
        let watch = LockWatch::observe(&path, &users, WATCH_TIME.min(budget.remaining() / 4));
        let (stamp, journal) = (FileStamp::read(&path)?, RollbackJournal::read(&path));
        // If the journal is being written, a process has a lock, or the journal is gone by now.
        let is_written = watch.held.iter().any(|held| held.lock.is_exclusive());
        let is_same = before == journal && journal.as_ref().is_some_and(|it| it.has_header);
        Ok(Self {
            is_hot: is_same && !is_written && stamp.bytes > 0,
            stamp,
            header,
            wal: WalFileInfo::read(&path),
            has_shm: side_file_path(&path, "-shm").exists(),
            journal,
            users,
            watch,
            file_system: engine::fs_type(&path),
            free_bytes: free_bytes(directory),
            temp: find_temp_space(places),
            is_keyed,
            links_count: metadata.nlink(),
            other_names: other_names(&path, &metadata),
            irregular: irregular(&path),
            path,
        })
    }

    /// Checks whether a process has the file open, or may have, on another machine. Processes of
    /// other users may be invisible; their changes during the examination are noticed at its end.
    pub(crate) fn may_be_in_use(&self) -> bool {
        !self.users.processes.is_empty() || !self.watch.held.is_empty() || self.is_networked()
    }

    /// Returns the bytes that must be read before the content can be read: a hot journal, a WAL.
    pub(crate) fn recovery_bytes(&self) -> u64 {
        let journal = self.journal.as_ref().filter(|_| self.is_hot).map_or(0, |it| it.bytes);
        journal + self.wal.as_ref().map_or(0, |wal| wal.bytes)
    }

    /// Checks whether the file or its WAL was written since the inspection.
    pub(crate) fn has_changed(&self) -> bool {
        let wal = |wal: &WalFileInfo| (wal.bytes, wal.modified);
        FileStamp::read(&self.path).ok() != Some(self.stamp)
            || WalFileInfo::read(&self.path).as_ref().map(wal) != self.wal.as_ref().map(wal)
    }

    pub(crate) fn is_networked(&self) -> bool {
        self.file_system.as_deref().is_some_and(is_network)
    }

    /// Checks whether the WAL has content, which the main file may lack.
    pub(crate) fn has_wal_content(&self) -> bool {
        self.wal.as_ref().is_some_and(|wal| wal.bytes > 0)
    }
}

/// The maximum number of names in the same directory that are compared.
const NAMES_MAX: usize = 100_000;

fn other_names(path: &Path, metadata: &Metadata) -> Vec<OtherName> {
    let directory = path.parent().filter(|_| metadata.nlink() > 1);
    let Some(entries) = directory.and_then(|directory| fs::read_dir(directory).ok()) else {
        return Vec::new();
    };
    let is_same = |other: &Path| {
        let other = other.symlink_metadata();
        other.is_ok_and(|it| (it.dev(), it.ino()) == (metadata.dev(), metadata.ino()))
    };
    let paths = entries.flatten().take(NAMES_MAX).map(|entry| entry.path());
    let others = paths.filter(|other| other != path && is_same(other));
    let has_content = |path: &Path| path.metadata().is_ok_and(|it| it.is_file() && it.len() > 0);
    let name = |path: PathBuf| {
        let has_journal =
            ["-journal", "-wal"].iter().any(|it| has_content(&side_file_path(&path, it)));
        OtherName { path, has_journal }
    };
    others.map(name).collect()
}

fn irregular(path: &Path) -> Vec<PathBuf> {
    let companions = ["-journal", "-wal", "-shm"].map(|suffix| side_file_path(path, suffix));
    let is_irregular = |path: &PathBuf| path.metadata().is_ok_and(|it| !it.is_file());
    companions.into_iter().filter(is_irregular).collect()
}

impl FileStamp {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(io(path))?;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl RollbackJournal {
    /// Reads the state of the journal. SQLite considers a journal valid if its first byte is not 0.
    fn read(database: &Path) -> Option<Self> {
        let path = side_file_path(database, "-journal");
        let bytes = path.metadata().ok().filter(Metadata::is_file)?.len();
        let start = read_prefix(&path, 1).unwrap_or_default();
        Some(Self { bytes, has_header: start.first().is_some_and(|byte| *byte != 0) })
    }
}

impl LockWatch {
    /// Observes the locks once, and repeatedly while a lock is held, until it is released or the
    /// time is over.
    fn observe(path: &Path, users: &OpenProcesses, time: Duration) -> Self {
        let Some(main) = LockedInode::from_path(path) else { return Self::default() };
        let shm = || LockedInode::from_path(&side_file_path(path, "-shm"));
        let users: Vec<i32> = users.processes.iter().map(|process| process.pid).collect();
        let look = || sqlite_locks::held_locks(main, shm(), &users);
        let state = || (WalIndex::read(path), FileStamp::read(path).ok());
        let (started, first) = (clock::now(), state());
        let (reads, interval) =
            if users.is_empty() { READS_PER_LOOK } else { READS_PER_LOOK_IN_USE };
        let look_again = || {
            time_limit::pause(interval);
            look()
        };
        let mut watch = Self {
            held: (1..reads).fold(look(), |held, _| &held | &look_again()),
            observations_count: 1,
            nothing_committed: true,
            ..Self::default()
        };
        while !watch.held.is_empty() && clock::now() - started < time {
            time_limit::pause(WATCH_INTERVAL);
            let mut later = look();
            for _ in 1..reads {
                if !later.is_superset(&watch.held) {
                    later.append(&mut look_again());
                }
            }
            watch.held.retain(|held| later.contains(held));
            watch.observations_count += 1;
        }
        let last = state();
        watch.time = clock::now() - started;
        watch.nothing_committed = match (&first.0, &last.0) {
            (Some(first), Some(last)) => first.change == last.change,
            _ => first.1 == last.1,
        };
        // A reader that started again during this time has another mark, and does not block
        // anything.
        let mark = |index: &Option<WalIndex>, mark| index.as_ref()?.mark(mark);
        watch.held.retain(|held| match held.lock {
            SqliteLock::WalRead(reader) => mark(&first.0, reader) == mark(&last.0, reader),
            _ => true,
        });
        watch.index = last.0;
        watch.is_connected = (0..reads).any(|_| sqlite_locks::is_connected(shm(), &users));
        watch
    }
}

/// Checks for file systems whose locks use a network, or a layer that often has no locks.
fn is_network(kind: &str) -> bool {
    const NETWORKS: &[&str] = &[
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
    ];
    const FUSE: &[&str] = &[
        "s3fs",
        "sshfs",
        "rclone",
        "gcsfuse",
        "glusterfs",
        "davfs",
        "mountpoint-s3",
        "goofys",
        "vmhgfs-fuse",
        "smbnetfs",
        "ceph-fuse",
    ];
    let fuse = kind.strip_prefix("fuse.");
    NETWORKS.contains(&kind) || fuse.is_some_and(|kind| FUSE.contains(&kind))
}

fn free_bytes(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

/// Returns the first of SQLite's temporary directories that is writable
/// (<https://sqlite.org/tempfiles.html#temporary_file_storage_locations>).
fn find_temp_space(places: &TempDirVariables) -> Option<TempSpace> {
    let named = [places.sqlite_tmpdir.as_deref(), places.tmpdir.as_deref()];
    let fixed = ["/var/tmp", "/usr/tmp", "/tmp"].map(Path::new);
    let mut candidates = named.into_iter().flatten().chain(fixed);
    let path = candidates.find(|path| is_usable(path))?;
    let is_told = places.is_told;
    Some(TempSpace { path: path.to_owned(), free_bytes: free_bytes(path)?, is_told })
}

fn is_usable(path: &Path) -> bool {
    use rustix::fs::Access;
    path.is_dir() && rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
impl FileEnvironment {
    /// Creates the environment of an unused file of this size, on a local disk with free space.
    pub(crate) fn sample(bytes: u64) -> Self {
        Self {
            path: "/srv/a.db".into(),
            stamp: FileStamp { bytes, modified: None },
            header: None,
            wal: None,
            has_shm: false,
            journal: None,
            is_hot: false,
            users: OpenProcesses::default(),
            watch: LockWatch::default(),
            file_system: Some("ext4".to_owned()),
            free_bytes: Some(u64::MAX),
            temp: None,
            is_keyed: false,
            links_count: 1,
            other_names: Vec::new(),
            irregular: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known() {
        for kind in ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"] {
            assert!(is_network(kind), "{kind}");
        }
        for kind in ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuseblk", "fuse.lxcfs"] {
            assert!(!is_network(kind), "{kind}");
        }
    }
}
