//! The lock of a directory, against databases that change their files while one is opened.
//!
//! # Not here
//! - What is done under the lock → `maintenance/replace_file.rs`, `open.rs`.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::clock;
use super::directory::directory_of;
use crate::error::{Error, Result, io};

/// The directory of a database, locked with `flock` against swaps, or for one. SQLite's own locks
/// are of another kind and lie on the files. Unlocked when dropped, and by the end of the process.
pub(crate) struct DirectoryLock(#[expect(dead_code, reason = "held for its lock")] File);

impl DirectoryLock {
    /// While a database in it is opened. Waits for a swap, which takes milliseconds. `None`: this
    /// file system has no such locks, so that nobody swaps here either.
    pub(crate) fn shared(database: &Path) -> Result<Option<Self>> {
        let path = directory_of(database);
        let directory = File::open(path).map_err(io(path))?;
        match directory.lock_shared() {
            Ok(()) => Ok(Some(Self(directory))),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(io(path)(error)),
        }
    }

    /// For a swap, or while a database is created. [`Error::Busy`] if others go on opening
    /// databases until then.
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

/// Whether the file system has no locks of this kind. Anything else, as too few descriptors,
/// passes.
pub(crate) fn is_unsupported(error: &std::io::Error) -> bool {
    use rustix::io::Errno;

    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOLCK, Errno::INVAL];
    unsupported.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
