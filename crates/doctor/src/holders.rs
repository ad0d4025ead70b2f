//! Which other processes have a database open, and what they do with it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::locks::{Inode, Lock, held};
use crate::processes::{Process, users};

/// A process that has a database open.
#[derive(Clone, Debug, Serialize)]
pub struct Holder {
    /// Which.
    #[serde(flatten)]
    pub process: Process,
    /// It reads a snapshot just now: the WAL cannot be started anew.
    pub reads: bool,
    /// It has a transaction open that writes.
    pub writes: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.process.title())?;
        match (self.writes, self.reads) {
            (true, _) => f.write_str(", which writes"),
            (_, true) => f.write_str(", which reads"),
            _ => Ok(()),
        }
    }
}

/// All processes but this one that have the database or its `-shm` file open. Of other users', and of
/// those that hide their memory (as `warren serve`), all but root see those that have locks.
pub fn holders(database: &Path) -> Vec<Holder> {
    let mut shm = database.as_os_str().to_owned();
    shm.push("-shm");
    let shm = Path::new(&shm);
    let mut processes = users(database).processes;
    processes.extend(users(shm).processes);
    processes.sort_by_key(|process| process.pid);
    processes.dedup();
    let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
    let locks = Inode::of(database).map(|main| held(main, Inode::of(shm), &pids));
    let locks = locks.unwrap_or_default();
    // In the order of their numbers, each once.
    let unseen: BTreeSet<i32> = locks.iter().map(|held| held.pid).collect();
    let unseen = unseen.into_iter().filter(|pid| *pid > 0 && !pids.contains(pid));
    processes.extend(unseen.map(Process::of));
    let holder = |process: Process| {
        let has = |is_it: fn(Lock) -> bool| {
            locks.iter().any(|held| held.pid == process.pid && is_it(held.lock))
        };
        Holder { reads: has(Lock::reads), writes: has(Lock::excludes), process }
    };
    processes.into_iter().map(holder).collect()
}
