//! Builds the data directory that a restore creates.
//!
//! Files are written into a directory in it, `restoring`, and moved to their final places when all
//! of them are complete and on the disk. While that directory exists, no server and no command
//! opens the data directory. So no process works on half of a restore, no matter where it was
//! interrupted, and the next restore starts again.
//!
//! The directory `restoring` is not next to the data directory, because that may be the root of a
//! file system, or in a directory that belongs to somebody else.

use std::fs;
use std::path::{Path, PathBuf};

use accounts::{ACCOUNTS_FILE, RESTORING, REVOCATIONS_FILE, VAULTS_DIRECTORY};
use anyhow::{Context, ensure};
use engine::{directory_of, sync_directory};
use mail_store::SPOOL_FILE;
use sync_store::DataDirLock;

use super::files::{entries, not_empty};

/// Files that an empty directory may contain: a lock, and the file system's own directory.
const EMPTY: [&str; 2] = ["server.lock", "lost+found"];
/// Files that an interrupted restore may have moved to their places, or that a server creates
/// before it finds that it may not open the directory.
const UNFINISHED: [&str; 4] = [RESTORING, VAULTS_DIRECTORY, REVOCATIONS_FILE, "disk-reserve"];

pub(super) struct RestoreTarget {
    data: PathBuf,
    /// The directory for the files: a complete data directory of its own.
    folder: PathBuf,
    /// Whether no file is outside `folder` yet, so that removing it leaves an empty directory.
    may_be_undone: bool,
    _lock: DataDirLock,
}

impl RestoreTarget {
    /// Prepares a directory, and creates it if it does not exist. It must be empty, or contain only
    /// the remains of an interrupted restore, which are removed.
    pub(super) fn begin(data: &Path) -> anyhow::Result<Self> {
        let lock = DataDirLock::acquire(data, "warren restore")?;
        let folder = data.join(RESTORING);
        let is_unfinished = folder.exists();
        let found = entries(data)?;
        let mut rest = found.iter().filter(|name| !EMPTY.contains(&name.as_str()));
        let is_ours = |name: &String| {
            let is_database = name.starts_with(ACCOUNTS_FILE) || name.starts_with(SPOOL_FILE);
            is_unfinished && (is_database || UNFINISHED.contains(&name.as_str()))
        };
        let is_fresh = rest.all(is_ours);
        ensure!(is_fresh, not_empty(data));
        // `restoring` is removed last: until then the data directory must not be opened.
        let left = found.iter().filter(|name| is_ours(name) && *name != RESTORING);
        for name in left.map(String::as_str).chain(is_unfinished.then_some(RESTORING)) {
            remove(&data.join(name))?;
        }
        accounts::make_data_directory(&folder)?;
        sync_directory(data)?;
        Ok(Self { data: data.to_owned(), folder, may_be_undone: true, _lock: lock })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the temporary path of a file, given its path in the data directory.
    pub(super) fn place(&self, path: &str) -> anyhow::Result<PathBuf> {
        let place = self.folder.join(path);
        accounts::make_data_directory(place.parent().context("a file has a folder")?)?;
        Ok(place)
    }

    /// Moves all files to their places.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        sync_tree(&self.folder)?;
        self.may_be_undone = false;
        for name in entries(&self.folder)? {
            let to = self.data.join(&name);
            fs::rename(self.folder.join(&name), &to).with_context(|| to.display().to_string())?;
        }
        sync_directory(&self.data)?;
        // From here on, the directory is a data directory.
        fs::remove_dir(&self.folder).with_context(|| self.folder.display().to_string())?;
        sync_directory(&self.data)?;
        Ok(sync_directory(directory_of(&self.data))?)
    }
}

impl Drop for RestoreTarget {
    fn drop(&mut self) {
        if self.may_be_undone {
            // If this fails, the next restore removes the files.
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// Removes a file, or a directory with all its contents.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| path.display().to_string())
}

/// Ensures that all names in a directory and in those below it are on the disk.
fn sync_tree(folder: &Path) -> anyhow::Result<()> {
    for name in entries(folder)? {
        let path = folder.join(name);
        if path.is_dir() {
            sync_tree(&path)?;
        }
    }
    Ok(sync_directory(folder)?)
}
