//! The lock of a data directory: one server, or one tool that must not run while a server does.
//!
//! It is a `flock` on the file `server.lock` in the directory, which ends with its process, however
//! that ends. The file contains the name of the process. Two servers on one directory would each
//! cache what they have read for some milliseconds, notify only their own subscribers of new
//! messages, and each take its upload for the only one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The file name of the lock in a data directory.
const LOCK_FILE: &str = "server.lock";

/// A lock on a data directory, which is held until this is dropped.
#[derive(Debug)]
pub struct DataDirLock(#[expect(dead_code, reason = "held for its lock")] File);

impl DataDirLock {
    /// Locks the directory, which is created if it is missing, for `what`: the name of a command.
    ///
    /// Returns [`Error::DataInUse`] if another process has it. If the file system does not support
    /// locks, the directory is used without one, and the log contains a warning.
    pub fn acquire(data: &Path, what: &str) -> Result<Self> {
        accounts::make_data_directory(data)?;
        let path = data.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(data, &mut file)),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                let path = data.display();
                tracing::warn!(
                    %path,
                    "the file system has no locks: nothing prevents a second server from starting"
                );
            }
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
        }
        let holder = format!("{what}, process {}\n", std::process::id());
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())
        };
        write(&mut file).map_err(io(&path))?;
        Ok(Self(file))
    }
}

fn in_use(data: &Path, file: &mut File) -> Error {
    let mut holder = String::new();
    // The file may just be being written.
    let is_known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
    let holder = if is_known { holder.trim().to_owned() } else { "another process".to_owned() };
    Error::DataInUse { path: data.to_owned(), holder }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path: PathBuf = path.to_owned();
    move |source| Error::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_and_names_it() {
        let data = tempfile::tempdir().unwrap();
        let held = DataDirLock::acquire(data.path(), "warren serve").unwrap();
        let refused = DataDirLock::acquire(data.path(), "warren storage migrate").unwrap_err();
        let Error::DataInUse { holder, .. } = refused else { panic!("{refused}") };
        assert_eq!(holder, format!("warren serve, process {}", std::process::id()));
        drop(held);
        drop(DataDirLock::acquire(data.path(), "warren storage migrate").unwrap());
    }

    #[test]
    fn what_a_killed_process_has_left_is_nobodys() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(LOCK_FILE), "warren serve, process 1, and more\n").unwrap();
        let _held = DataDirLock::acquire(data.path(), "warren serve").unwrap();
        let text = std::fs::read_to_string(data.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, format!("warren serve, process {}\n", std::process::id()));
    }
}
