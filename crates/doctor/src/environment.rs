//! Inspects the environment of a file: its disk, locks, WAL, and the processes that have it open.

pub(crate) mod file_environment;
pub(crate) mod file_holders;
pub(crate) mod memory;
pub(crate) mod processes;
pub(crate) mod sqlite_locks;
pub(crate) mod temp_dirs;
pub(crate) mod wal;
pub(crate) mod watch;
