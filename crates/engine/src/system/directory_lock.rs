//! Locks a directory, so that no database's file in it is replaced while one is opened.
//!
//! # Not here
//! - The work under the lock → `maintenance/replace_file.rs`, `open.rs`.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::clock;
use super::directory::directory_of;
use crate::error::{Error, Result, io};

/// The directory of a database, locked with `flock` against replacements, or for one. SQLite's own
/// locks are of another kind, and on the files. It is unlocked when dropped, and when the process
/// ends.
pub(crate) struct DirectoryLock(#[expect(dead_code, reason = "held for its lock")] File);

impl DirectoryLock {
    /// Locks the directory while a database in it is opened. Waits for a replacement, which takes
    /// milliseconds. Returns `None` if the file system has no such locks, so that no file is
    /// replaced there either.
    pub(crate) fn shared(database: &Path) -> Result<Option<Self>> {
        let path = directory_of(database);
        let directory = File::open(path).map_err(io(path))?;
        match directory.lock_shared() {
            Ok(()) => Ok(Some(Self(directory))),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(io(path)(error)),
        }
    }

    /// Locks the directory for a replacement, or while a database is created. Returns
    /// [`Error::Busy`] if others keep opening databases until `until`.
    pub(crate) fn exclusive(database: &Path, until: Instant) -> Result<Self> {
        let path = directory_of(database);
        let directory = File::open(path).map_err(io(path))?;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Self(directory)),
                Err(TryLockError::Error(error)) => return Err(io(path)(error)),
                Err(TryLockError::WouldBlock) if clock::now() >= until => return Err(Error::Busy),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
    }
}

/// Checks whether the file system has no locks of this kind. Other errors, such as too few
/// descriptors, are temporary.
pub(crate) fn is_unsupported(error: &std::io::Error) -> bool {
    use rustix::io::Errno;

    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOLCK, Errno::INVAL];
    unsupported.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
