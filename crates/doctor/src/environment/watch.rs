//! Watches a database in use from outside: which processes read and write, how fast it commits, how
//! long its WAL is.
//!
//! # Invariants
//! - This module never opens the database: it reads the header and the companions as files, and the
//!   locks from `/proc`. No process has to wait for it.
//!
//! # Not here
//! - Whether there is a problem → `checks/locks.rs`, `checks/journal.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::{clock, side_file_path};
use serde::Serialize;
use utoipa::ToSchema;

use super::processes::{ProcessInfo, processes_with_open};
use super::sqlite_locks::{HeldLock, LockedInode, SqliteLock, held_locks};
use super::wal::{WalIndex, read_prefix};
use crate::error::{Result, io};
use crate::file::database_header::{MAGIC, u32_at};
use crate::format::{ratio, to_f64, to_ms};
use crate::time_limit;

/// The time between two reads of the locks.
const LOOK: Duration = Duration::from_millis(50);
/// The offset of the header field that counts the transactions of a rollback-journal database.
const CHANGE_COUNTER: usize = 24;

/// A watcher of a database in use.
pub struct FileWatcher {
    path: PathBuf,
    commits: Option<u32>,
    /// The time since which each process has had its snapshot, as far as it was observed.
    reading: BTreeMap<(i32, SqliteLock), Instant>,
}

/// The activity on a file in one interval.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchInterval {
    /// The length of the interval in milliseconds.
    pub duration_ms: u64,
    /// The size of the main file in bytes.
    pub file_bytes: u64,
    /// The size of the `-wal` file in bytes; null if there is none.
    pub wal_bytes: Option<u64>,
    /// The number of frames that were committed to the WAL since it last started from its
    /// beginning; null without a WAL.
    pub wal_frames_count: Option<u32>,
    /// The number of frames of the WAL that are not in the main file yet; null without a WAL.
    pub wal_uncopied_count: Option<u32>,
    /// The number of transactions that wrote; null if the file is encrypted and has no WAL.
    pub commits_count: Option<u32>,
    /// The share of the interval in which a process could write: 0 to 1.
    pub writing_ratio: f64,
    /// The processes that have the file open, the busiest first.
    pub users: Vec<WatchedProcess>,
}

/// A process that has the file open.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchedProcess {
    /// The process ID.
    pub pid: i32,
    /// The name of the process, from `/proc/PID/comm`.
    pub name: String,
    /// The command line of the process, cut after 80 characters.
    pub command: String,
    /// The share of the interval in which the process could write: 0 to 1.
    pub writing_ratio: f64,
    /// The share of the interval in which the process had a snapshot: 0 to 1.
    pub reading_ratio: f64,
    /// The time in milliseconds for which the process has had the same snapshot, as far as it was
    /// observed; null without a snapshot.
    pub snapshot_duration_ms: Option<u64>,
    /// The number of frames of the WAL that the process does not see and that therefore stay in the
    /// WAL; null without a snapshot of a WAL.
    pub behind_frames_count: Option<u32>,
}

impl FileWatcher {
    /// Creates a watcher of an existing file.
    pub fn new(path: &Path) -> Result<Self> {
        let path = path.canonicalize().map_err(io(path))?;
        Ok(Self { commits: commits(&path), path, reading: BTreeMap::new() })
    }

    /// Watches the file for this time.
    pub fn observe(&mut self, time: Duration) -> Result<WatchInterval> {
        let started = clock::now();
        let processes = processes_with_open(&self.path).processes;
        let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
        let (mut looks, mut writing, mut seen) = (0_u64, 0_u64, BTreeMap::new());
        let mut last;
        loop {
            last = self.update_locks(&pids);
            looks += 1;
            let mut count = |is_it: fn(SqliteLock) -> bool, place: usize| {
                let of: BTreeSet<i32> =
                    last.iter().filter(|it| is_it(it.lock)).map(|it| it.pid).collect();
                for pid in &of {
                    seen.entry(*pid).or_insert([0_u64; 2])[place] += 1;
                }
                !of.is_empty()
            };
            writing += u64::from(count(SqliteLock::is_exclusive, 0));
            count(SqliteLock::reads, 1);
            let left = time.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            time_limit::pause(left.min(LOOK));
        }
        let metadata = fs::metadata(&self.path).map_err(io(&self.path))?;
        let wal = fs::metadata(side_file_path(&self.path, "-wal")).ok();
        let index = WalIndex::read(&self.path);
        let commits = commits(&self.path);
        let commits_count = commits.zip(self.commits).map(|(now, then)| now.wrapping_sub(then));
        self.commits = commits.or(self.commits);
        let mut users = self.users(processes, &seen, &last, index.as_ref(), looks);
        let busy = |user: &WatchedProcess| user.writing_ratio + user.reading_ratio;
        users.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        Ok(WatchInterval {
            duration_ms: to_ms(started.elapsed()),
            file_bytes: metadata.len(),
            wal_bytes: wal.map(|wal| wal.len()),
            wal_frames_count: index.as_ref().map(|index| index.frames_count),
            wal_uncopied_count: index
                .as_ref()
                .map(|index| index.frames_count.saturating_sub(index.copied_count)),
            commits_count,
            writing_ratio: ratio(writing, looks),
            users,
        })
    }

    /// Returns the current locks, and records since when snapshots are held.
    fn update_locks(&mut self, pids: &[i32]) -> BTreeSet<HeldLock> {
        let shm = LockedInode::from_path(&side_file_path(&self.path, "-shm"));
        let locks = LockedInode::from_path(&self.path)
            .map(|main| held_locks(main, shm, pids))
            .unwrap_or_default();
        let reading: BTreeSet<(i32, SqliteLock)> = locks
            .iter()
            .filter(|held| held.lock.reads())
            .map(|held| (held.pid, held.lock))
            .collect();
        self.reading.retain(|held, _| reading.contains(held));
        let now = clock::now();
        for held in reading {
            self.reading.entry(held).or_insert(now);
        }
        locks
    }

    /// Returns the processes with their shares, including those that hold locks and hide their open
    /// files.
    fn users(
        &self,
        mut processes: Vec<ProcessInfo>,
        seen: &BTreeMap<i32, [u64; 2]>,
        last: &BTreeSet<HeldLock>,
        index: Option<&WalIndex>,
        looks: u64,
    ) -> Vec<WatchedProcess> {
        let is_known = |pid: i32| processes.iter().any(|process| process.pid == pid);
        let unseen: Vec<i32> =
            seen.keys().copied().filter(|pid| *pid > 0 && !is_known(*pid)).collect();
        processes.extend(unseen.into_iter().map(ProcessInfo::from_pid));
        let user = |process: ProcessInfo| {
            let pid = process.pid;
            let [writing, reading] = seen.get(&pid).copied().unwrap_or_default();
            let held = self.reading.iter().filter(|((of, _), _)| *of == pid);
            let longest = held.map(|(_, since)| to_ms(since.elapsed())).max();
            let behind = last.iter().filter(|held| held.pid == pid).filter_map(|held| {
                let SqliteLock::WalRead(mark) = held.lock else { return None };
                let index = index?;
                // A reader that started when the whole WAL was checkpointed reads only the main
                // file, and blocks checkpoints while it does.
                let sees = if mark == 0 { index.copied_count } else { index.mark(mark)? };
                Some(index.frames_count.saturating_sub(sees))
            });
            WatchedProcess {
                writing_ratio: ratio(writing, looks),
                reading_ratio: ratio(reading, looks),
                snapshot_duration_ms: longest,
                behind_frames_count: behind.max(),
                pid,
                name: process.name,
                command: process.command,
            }
        };
        processes.into_iter().map(user).collect()
    }
}

impl WatchInterval {
    /// Returns the number of transactions per second.
    pub fn commits_per_second(&self) -> Option<f64> {
        let commits = self.commits_count?;
        let seconds = Duration::from_millis(self.duration_ms).as_secs_f64();
        (seconds > 0.0).then(|| to_f64(commits.into()) / seconds)
    }
}

/// Returns the transaction counter: that of the WAL's index, otherwise that of the header.
fn commits(path: &Path) -> Option<u32> {
    if let Some(index) = WalIndex::read(path) {
        return Some(index.change);
    }
    let header = read_prefix(path, CHANGE_COUNTER + 4)?;
    u32_at(&header, CHANGE_COUNTER).filter(|_| header.starts_with(MAGIC))
}
