//! The data directory that a restore makes.
//!
//! Files are put into a folder in it, `restoring`, and moved to where a server looks for them when
//! all of them are complete and on the disk. As long as that folder is there, no server and no
//! command opens the directory. So nothing works on half of a restore, wherever it was interrupted,
//! and the next restore begins again.
//!
//! The folder is not next to the directory, because that may be the root of a file system, or in a
//! directory that belongs to somebody else.

use std::fs;
use std::path::{Path, PathBuf};

use accounts::{ACCOUNTS_FILE, RESTORING, REVOCATIONS_FILE, VAULTS_DIRECTORY};
use anyhow::{Context, ensure};
use engine::{directory_of, sync_directory};
use sync_store::DataDirLock;

use super::files::{entries, not_empty};

/// What may be in a directory that is as good as empty: a lock, and what a file system brings.
const EMPTY: [&str; 2] = ["server.lock", "lost+found"];
/// What an interrupted restore may have moved to its place, and what a server makes before it finds
/// that it may not open the directory.
const UNFINISHED: [&str; 4] = [RESTORING, VAULTS_DIRECTORY, REVOCATIONS_FILE, "disk-reserve"];

pub(super) struct RestoreTarget {
    data: PathBuf,
    /// Where files are put: a data directory of its own.
    folder: PathBuf,
    /// Nothing is outside the folder yet, so that without it the directory is empty.
    may_be_undone: bool,
    _lock: DataDirLock,
}

impl RestoreTarget {
    /// Takes a directory, which is made if it is not there. It must be empty, or hold what an
    /// interrupted restore has left, which is removed.
    pub(super) fn begin(data: &Path) -> anyhow::Result<Self> {
        let lock = DataDirLock::acquire(data, "warren restore")?;
        let folder = data.join(RESTORING);
        let is_unfinished = folder.exists();
        let found = entries(data)?;
        let mut rest = found.iter().filter(|name| !EMPTY.contains(&name.as_str()));
        let is_ours = |name: &String| {
            let is_accounts = name.starts_with(ACCOUNTS_FILE);
            is_unfinished && (is_accounts || UNFINISHED.contains(&name.as_str()))
        };
        let is_fresh = rest.all(is_ours);
        ensure!(is_fresh, not_empty(data));
        // The folder goes last: until then the directory is not to be opened.
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

    /// Where a file is to be put, whose path in the data directory this is.
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
        // From here on it is a data directory.
        fs::remove_dir(&self.folder).with_context(|| self.folder.display().to_string())?;
        sync_directory(&self.data)?;
        Ok(sync_directory(directory_of(&self.data))?)
    }
}

impl Drop for RestoreTarget {
    fn drop(&mut self) {
        if self.may_be_undone {
            // If that fails, the next restore does it.
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// Removes a file, or a folder with all that is in it.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| path.display().to_string())
}

/// Sees to it that the names in a folder are on the disk, and those in the folders below it.
fn sync_tree(folder: &Path) -> anyhow::Result<()> {
    for name in entries(folder)? {
        let path = folder.join(name);
        if path.is_dir() {
            sync_tree(&path)?;
        }
    }
    Ok(sync_directory(folder)?)
}
