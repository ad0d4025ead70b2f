//! Finds the other processes that have a file open, and their names.
//!
//! # Invariants
//! - A process whose open files this user may not see is counted, not ignored: the claim that no
//!   process has the file open requires that all processes could be seen.
//! - A child that this process is just starting is not a user: it has every file of this process
//!   open until its own program runs.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use std::{fs, process};

use engine::side_file_path;
use serde::Serialize;
use utoipa::ToSchema;

use crate::time_limit::pause;

/// A process on this computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProcessInfo {
    /// The process ID; 0 or less if the kernel does not identify the process.
    pub pid: i32,
    /// The name of the process, from `/proc/PID/comm`.
    pub name: String,
    /// The command line of the process, cut after 80 characters.
    pub command: String,
}

/// The maximum length of a command line that is shown.
const COMMAND_CHARACTERS_MAX: usize = 80;
/// The maximum number of checks whether a child has started its program.
const START_LOOKS_COUNT_MAX: usize = 2_000;
/// The time between two of these checks.
const START_LOOK_INTERVAL: Duration = Duration::from_millis(1);

impl ProcessInfo {
    pub(crate) fn from_pid(pid: i32) -> Self {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let command = text(&read("cmdline")).replace('\0', " ");
        let shown = command.char_indices().nth(COMMAND_CHARACTERS_MAX);
        let command = match shown {
            Some((at, _)) => format!("{}…", &command[..at]),
            None => command.trim_end().to_owned(),
        };
        Self { pid, name: text(&read("comm")), command }
    }

    pub(crate) fn display_name(&self) -> String {
        display_name(self.pid, &self.name)
    }
}

/// Formats a process as `python3 (pid 12)`, or as a description if the kernel does not name it.
pub(crate) fn display_name(pid: i32, name: &str) -> String {
    match pid {
        ..=0 => "a process that the kernel does not identify".to_owned(),
        pid => format!("{name} (pid {pid})"),
    }
}

/// The processes that have a file open.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenProcesses {
    pub(crate) processes: Vec<ProcessInfo>,
    /// WALs of the file that were deleted, and the processes that have them open.
    pub(crate) deleted_wals: Vec<DeletedWal>,
    /// The number of processes whose open files this user may not see.
    pub(crate) hidden_count: usize,
}

/// A WAL that was deleted while a process had it open.
#[derive(Clone, Debug)]
pub(crate) struct DeletedWal {
    pub(crate) process: ProcessInfo,
    /// The descriptor number in the process: `/proc/PID/fd/N`.
    pub(crate) descriptor: u32,
}

/// Returns the processes except this one that have a file open. Only descriptors whose name ends
/// like that of the file are inspected: a query about one on a dead network mount may hang.
pub(crate) fn processes_with_open(file: &Path) -> OpenProcesses {
    let mut users = OpenProcesses::default();
    let (Ok(metadata), Some(name)) = (fs::metadata(file), file.file_name()) else { return users };
    let Ok(entries) = fs::read_dir("/proc") else { return users };
    let own = i32::try_from(process::id()).unwrap_or(0);
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids.filter(|pid: &i32| *pid != own) {
        match keeps_open(pid, name, (metadata.dev(), metadata.ino())) {
            Some(true) => {
                let process = ProcessInfo::from_pid(pid);
                users.deleted_wals.extend(deleted_wal(&process, file));
                users.processes.push(process);
            }
            Some(false) => {}
            None => users.hidden_count += 1,
        }
    }
    users
}

/// Finds the deleted WAL of a process. Linux appends a word to the name of a deleted file.
fn deleted_wal(process: &ProcessInfo, file: &Path) -> Option<DeletedWal> {
    let name = side_file_path(file, "-wal (deleted)");
    let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid)).ok()?;
    let is_it = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|it| it == name);
    let found = descriptors.flatten().find(is_it)?;
    let descriptor = found.file_name().to_str()?.parse().ok()?;
    Some(DeletedWal { process: process.clone(), descriptor })
}

/// Calls [`has_open`] after waiting until a child that has not started its program yet has done so.
fn keeps_open(pid: i32, name: &OsStr, file: (u64, u64)) -> Option<bool> {
    let mut is_open = has_open(pid, name, file);
    for _ in 0..START_LOOKS_COUNT_MAX {
        if is_open != Some(true) {
            break;
        }
        let is_starting = is_starting(pid);
        // This is read after `is_starting`: files that a running program has open, it opened
        // itself.
        is_open = has_open(pid, name, file);
        if !is_starting {
            break;
        }
        pause(START_LOOK_INTERVAL);
    }
    is_open
}

/// Checks whether a child of this process still runs this process's program: between fork and exec.
fn is_starting(pid: i32) -> bool {
    // The format is "PID (NAME) STATE PARENT …"; the name may contain parentheses.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let parent = fields.split_ascii_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    parent == Some(process::id()) && program(pid.unsigned_abs()) == program(process::id())
}

/// Checks whether a process has the file open. Returns `None` if its descriptors cannot be read. A
/// process that has just ended has nothing open.
fn has_open(pid: i32, name: &OsStr, file: (u64, u64)) -> Option<bool> {
    let descriptors = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            // The kernel's own threads have no command line, and open no databases.
            let is_kernel = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.is_empty());
            return is_kernel.then_some(false);
        }
        Err(_) => return Some(false),
    };
    let is_it = |descriptor: fs::DirEntry| {
        let link = fs::read_link(descriptor.path()).ok()?;
        let has_name = link.file_name() == Some(name);
        let metadata = fs::metadata(descriptor.path()).ok().filter(|_| has_name)?;
        Some((metadata.dev(), metadata.ino()) == file)
    };
    Some(descriptors.flatten().any(|descriptor| is_it(descriptor) == Some(true)))
}
