//! Lists the other processes that have a database open, and whether they read or write.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use engine::side_file_path;
use serde::Serialize;
use utoipa::ToSchema;

use super::processes::{ProcessInfo, display_name, processes_with_open};
use super::sqlite_locks::{LockedInode, SqliteLock, held_locks};

/// A process that has a database open.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FileHolder {
    /// The process ID; 0 or less if the kernel does not identify the process.
    pub pid: i32,
    /// The name of the process, from `/proc/PID/comm`.
    pub name: String,
    /// The command line of the process, cut after 80 characters.
    pub command: String,
    /// Whether the process reads a snapshot at this moment. While it does, the WAL cannot start
    /// again from its beginning.
    pub reading: bool,
    /// Whether the process has a write transaction open.
    pub writing: bool,
}

impl FileHolder {
    pub(crate) fn display_name(&self) -> String {
        display_name(self.pid, &self.name)
    }
}

impl fmt::Display for FileHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_name())?;
        match (self.writing, self.reading) {
            (true, _) => f.write_str(", which writes"),
            (_, true) => f.write_str(", which reads"),
            _ => Ok(()),
        }
    }
}

/// Returns all processes except this one that have the database or its `-shm` file open. Without
/// root rights, processes of other users and those that hide their memory (such as `warren serve`)
/// are included only if they hold locks.
pub fn file_holders(database: &Path) -> Vec<FileHolder> {
    let shm = &side_file_path(database, "-shm");
    let mut processes = processes_with_open(database).processes;
    processes.extend(processes_with_open(shm).processes);
    processes.sort_by_key(|process| process.pid);
    processes.dedup();
    let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
    let locks = LockedInode::from_path(database)
        .map(|main| held_locks(main, LockedInode::from_path(shm), &pids));
    let locks = locks.unwrap_or_default();
    // Process ids are unique and sorted.
    let unseen: BTreeSet<i32> = locks.iter().map(|held| held.pid).collect();
    let unseen = unseen.into_iter().filter(|pid| *pid > 0 && !pids.contains(pid));
    processes.extend(unseen.map(ProcessInfo::from_pid));
    let holder = |process: ProcessInfo| {
        let has = |is_it: fn(SqliteLock) -> bool| {
            locks.iter().any(|held| held.pid == process.pid && is_it(held.lock))
        };
        FileHolder {
            reading: has(SqliteLock::reads),
            writing: has(SqliteLock::is_exclusive),
            pid: process.pid,
            name: process.name,
            command: process.command,
        }
    };
    processes.into_iter().map(holder).collect()
}
