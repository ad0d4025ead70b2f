//! Creates folders for temporary copies of databases, which do not outlive the process that created
//! them.
//!
//! A program that ends normally drops them; a program that a signal ends calls
//! [`remove_temporary_files`]; the folders of a killed program are removed when a folder is next
//! created in the same place.
//!
//! ```text
//! app.db   warren-tune-k3Xv9q/   scratch.lock   locked (flock) while its process lives
//!                                copy.sqlite    …
//! ```
//!
//! # Invariants
//! - Other users can neither list a folder nor, unless it was opened for that, enter it.
//! - A folder of another process is removed only if it has our prefix, belongs to this user, and
//!   contains a lock file that no process has locked.
//! - The lock file is removed last, so that a half-removed folder is found again.
//!
//! # Not here
//! - Handling signals → the program.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::process::geteuid;

use super::directory_lock::is_unsupported;
use super::side_files::{open_regular, remove_copy, side_file_path};
use crate::error::{Result, io};

const PREFIX: &str = "warren-";
const LOCK: &str = "scratch.lock";
/// The number of attempts to empty a folder in which threads, or a server that was started there,
/// still create files.
const PASSES_MAX: usize = 100;

/// The paths that this process must remove before it ends.
static TEMPORARY: Mutex<TemporaryPaths> =
    Mutex::new(TemporaryPaths { folders: Vec::new(), copies: Vec::new() });

pub(crate) struct TemporaryPaths {
    folders: Vec<PathBuf>,
    /// The compact copies that have not replaced their originals.
    pub(crate) copies: Vec<PathBuf>,
}

/// A temporary folder, which is removed with all its content when dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
    _lock: File,
}

impl ScratchFolder {
    /// Creates `warren-NAME-…` in `parent`, and removes the folders that killed processes have left
    /// there.
    pub fn new(parent: &Path, name: &str) -> Result<Self> {
        // The list is locked until the folder is in it, so that a signal finds the folder there.
        let mut temporary = temporary();
        remove_abandoned(parent);
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(io(parent))?;
        let lock = lock(made.path()).map_err(io(made.path()))?;
        let path = made.keep();
        temporary.folders.push(path.clone());
        Ok(Self { path, _lock: lock })
    }

    /// Lets other users enter the folder, but not list it: for servers that run as users of their
    /// own. The mode of each file in it should restrict who may read it.
    pub fn let_others_enter(self) -> Result<Self> {
        let permissions = Permissions::from_mode(0o711);
        fs::set_permissions(&self.path, permissions).map_err(io(&self.path))?;
        Ok(self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let mut temporary = temporary();
        temporary.folders.retain(|path| *path != self.path);
        if let Err(error) = remove(&self.path) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "cannot remove a temporary directory");
        }
    }
}

/// Removes the scratch folders and the unfinished compact copies of this process, for a program
/// that ends right afterwards: a thread that then creates or drops one waits until the process
/// ends.
pub fn remove_temporary_files() -> Result<()> {
    let temporary = temporary();
    let copies = temporary.copies.iter().map(|copy| remove_copy(copy));
    let mut removed = copies.fold(Ok(()), Result::and);
    for path in &temporary.folders {
        // Under the new name, threads that still work do not find the folder, and create nothing
        // new in it.
        let renamed = side_file_path(path, ".ending");
        let path = if fs::rename(path, &renamed).is_ok() { &renamed } else { path };
        removed = removed.and(remove(path).map_err(io(path)));
    }
    // The list is never unlocked: messages of such a thread about its missing files would be
    // misleading.
    std::mem::forget(temporary);
    removed
}

pub(crate) fn temporary() -> MutexGuard<'static, TemporaryPaths> {
    TEMPORARY.lock().expect("no code panics while it holds this lock")
}

/// Creates the lock file and locks it. The file gets its name only then, so that no process takes
/// it for one whose process has ended.
fn lock(folder: &Path) -> io::Result<File> {
    let unnamed = folder.join("scratch.new");
    let file = File::options().write(true).create_new(true).mode(0o600).open(&unnamed)?;
    match file.lock() {
        // Without such locks, no process can lock the file, so none removes the folder.
        Err(error) if is_unsupported(&error) => {}
        locked => locked?,
    }
    fs::rename(&unnamed, folder.join(LOCK))?;
    Ok(file)
}

/// Removes the folders in `parent` whose processes have ended. A folder that cannot be removed does
/// not prevent the creation of another.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Some(_lock) = is_named.then(|| lock_abandoned(&path)).flatten() else { continue };
        tracing::info!(path = %path.display(), "removing an abandoned temporary directory");
        if let Err(error) = remove(&path) {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot remove an abandoned temporary directory");
        }
    }
}

/// Locks a folder that is ours by all signs and whose process has ended. Returns the lock file.
fn lock_abandoned(folder: &Path) -> Option<File> {
    let metadata = fs::symlink_metadata(folder).ok()?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return None;
    }
    let lock = open_regular(&folder.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Some(lock)
}

fn remove(folder: &Path) -> io::Result<()> {
    for _ in 0..PASSES_MAX {
        if !empty(folder)? {
            break;
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    fs::remove_dir(folder)
}

/// Removes everything in a folder except the lock file. Returns `false` if there was nothing.
fn empty(folder: &Path) -> io::Result<bool> {
    let mut has_removed = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        has_removed = true;
        let is_folder = entry.file_type()?.is_dir();
        let path = entry.path();
        let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        // While others still work in the folder, files come and go.
        if let Err(error) = removed
            && !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty)
        {
            return Err(error);
        }
    }
    Ok(has_removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_folder_is_closed_to_others_and_goes_with_its_value() {
        let parent = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::new(parent.path(), "test").unwrap();
        let path = folder.path().to_owned();
        assert_eq!((mode(&path), mode(&path.join(LOCK))), (0o700, 0o600));
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/c"), "c").unwrap();
        fs::write(path.join("d"), "d").unwrap();
        drop(folder);
        assert!(!path.exists());
        let folder = ScratchFolder::new(parent.path(), "test").unwrap().let_others_enter().unwrap();
        assert_eq!(mode(folder.path()), 0o711);
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, files: &[&str]| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            for file in files {
                fs::write(folder.join(file), "x").unwrap();
            }
            folder
        };
        let living = ScratchFolder::new(parent.path(), "living").unwrap();
        let left = make("warren-tune-left", &[LOCK, "copy.sqlite"]);
        let half_removed = make("warren-tune-half", &[LOCK]);
        let of_user = make("warren-tune-results", &["notes"]);
        let other_name = make("tune-left", &[LOCK]);
        let linked = parent.path().join("warren-tune-link");
        std::os::unix::fs::symlink(&other_name, &linked).unwrap();
        let lock_linked = make("warren-tune-linked-lock", &[]);
        std::os::unix::fs::symlink(other_name.join(LOCK), lock_linked.join(LOCK)).unwrap();

        drop(ScratchFolder::new(parent.path(), "next").unwrap());
        assert!(!left.exists() && !half_removed.exists());
        let stay = [living.path(), &of_user, &other_name, &linked, &lock_linked];
        assert!(stay.iter().all(|path| path.exists()), "{stay:?}");
    }
}
