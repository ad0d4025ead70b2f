//! Prepares the directory that a backup is written to.
//!
//! Until the backup is complete, the directory contains the file `unfinished`, locked by its
//! process. This is how the next backup into the same directory recognizes one that was
//! interrupted, by Ctrl-C or by anything else: it removes its remains and starts again.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use accounts::{ACCOUNTS_FILE, REVOCATIONS_FILE, VAULTS_DIRECTORY};
use anyhow::{Context, bail, ensure};
use engine::sync_directory;
use mail_store::SPOOL_FILE;
use protocol::ErrorCode;

use super::files::{entries, not_empty};
use super::target::remove;
use crate::output::CommandError;

const UNFINISHED: &str = "unfinished";
/// The root of a file system contains this directory.
const LOST_AND_FOUND: &str = "lost+found";

pub(super) struct BackupFolder {
    path: PathBuf,
    /// The file `unfinished`, locked until the process ends.
    _unfinished: File,
}

impl BackupFolder {
    /// Prepares a directory, and creates it if it does not exist. It must be empty, or contain only
    /// the remains of an interrupted backup, which are removed; and it must not be in the data
    /// directory.
    pub(super) fn begin(path: &Path, data: &Path) -> anyhow::Result<Self> {
        let is_inside = resolve(path)?.starts_with(resolve(data)?);
        ensure!(!is_inside, inside_data_directory(path));
        accounts::make_data_directory(path)?;
        let found = entries(path)?;
        let has_begun = found.iter().any(|name| name == UNFINISHED);
        let is_ours = |name: &String| {
            let is_copy = name.starts_with(ACCOUNTS_FILE)
                || name.starts_with(SPOOL_FILE)
                || [VAULTS_DIRECTORY, REVOCATIONS_FILE].contains(&&**name);
            has_begun && (is_copy || name == UNFINISHED)
        };
        let is_fresh = found.iter().all(|name| name == LOST_AND_FOUND || is_ours(name));
        ensure!(is_fresh, not_empty(path));
        let unfinished = lock(&path.join(UNFINISHED))?;
        for name in found.iter().filter(|name| is_ours(name) && *name != UNFINISHED) {
            remove(&path.join(name))?;
        }
        sync_directory(path)?;
        Ok(Self { path: path.to_owned(), _unfinished: unfinished })
    }

    /// Marks the backup as complete, after its manifest was written.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        remove(&self.path.join(UNFINISHED))?;
        Ok(sync_directory(&self.path)?)
    }
}

fn inside_data_directory(path: &Path) -> CommandError {
    let message = format!("{} is in the data directory", path.display());
    CommandError::usage(message).with_hint(
        "choose another directory: a backup inside the data directory would be lost with it",
    )
}

/// Resolves the links of a path, also for a directory that does not exist yet.
fn resolve(path: &Path) -> anyhow::Result<PathBuf> {
    for ancestor in path.ancestors() {
        let existing = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match fs::canonicalize(existing) {
            Ok(resolved) => return Ok(resolved.join(path.strip_prefix(ancestor)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| existing.display().to_string()),
        }
    }
    let message = format!("cannot resolve the path {}", path.display());
    bail!(CommandError::new(ErrorCode::FileNotFound, message))
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = format!("another backup is in progress: {} is locked", path.display());
            bail!(CommandError::new(ErrorCode::Busy, message).with_hint("wait until it finishes"))
        }
        // Without locks in the file system, another backup cannot be detected.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::backup::manifest;

    #[test]
    fn a_folder_in_the_data_directory_is_refused_whatever_leads_there() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        fs::create_dir_all(data.join(VAULTS_DIRECTORY)).unwrap();
        std::os::unix::fs::symlink(&data, place.path().join("link")).unwrap();
        for folder in ["data", "data/monday", "data/vaults/../a/b", "link", "link/monday"] {
            let refused = BackupFolder::begin(&place.path().join(folder), &data).map(drop);
            assert!(refused.unwrap_err().to_string().contains("in the data directory"), "{folder}");
        }
        BackupFolder::begin(&place.path().join("data-2/monday"), &data).unwrap();
    }

    #[test]
    fn an_interrupted_backup_is_begun_again_and_nothing_else_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let (data, folder) = (place.path().join("data"), place.path().join("monday"));
        let begin = || BackupFolder::begin(&folder, &data);
        let begun = begin().unwrap();
        fs::create_dir(folder.join(VAULTS_DIRECTORY)).unwrap();
        fs::write(folder.join(ACCOUNTS_FILE), "half").unwrap();
        let busy = begin().map(drop).unwrap_err().to_string();
        assert!(busy.contains("another backup"), "{busy}");
        drop(begun);
        let begun = begin().unwrap();
        assert_eq!(entries(&folder).unwrap(), [UNFINISHED]);
        drop(begun);
        fs::write(folder.join("notes"), "mine").unwrap();
        assert!(begin().map(drop).unwrap_err().to_string().contains("not empty"));
        fs::remove_file(folder.join("notes")).unwrap();
        fs::write(folder.join(manifest::NAME), "{}").unwrap();
        assert!(begin().map(drop).is_err(), "a complete one");
        // This directory contains the files of a data directory, but no sign of a backup.
        fs::remove_file(folder.join(manifest::NAME)).unwrap();
        fs::remove_file(folder.join(UNFINISHED)).unwrap();
        fs::write(folder.join(ACCOUNTS_FILE), "of a server").unwrap();
        assert!(begin().map(drop).is_err());
        assert_eq!(fs::read(folder.join(ACCOUNTS_FILE)).unwrap(), b"of a server");
    }
}
