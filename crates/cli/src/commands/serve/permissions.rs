//! Removes other users' access to a data directory, and warns about secret files that they can
//! read: both may come from an administrator or an earlier version.
//!
//! New files are accessible only to their owner (`hardening.rs`). At the start, the server also
//! restricts existing files, if they belong to the data directory: all its files, the vaults, and
//! the directory itself. It leaves the directory open, and logs a warning, if it also contains
//! other things, or if the system refuses.
//!
//! # Invariants
//! - The server starts even if this fails.
//! - No link is followed out of the directory, except the name `vaults` itself.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use accounts::{ACCOUNTS_FILE, VAULTS_DIRECTORY};
use anyhow::Context;
use mail_store::SPOOL_FILE;

const OTHERS: u32 = 0o077;
const READ_BY_ALL: u32 = 0o004;
/// The mode bit of a directory in which all users may create files, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Directories that a data directory may contain if it is used for nothing else: the vaults, and
/// the one at the root of a file system.
const FOLDERS: [&str; 2] = [VAULTS_DIRECTORY, "lost+found"];
/// The starts of the names of the server's own files (Format 6).
const FILES: [&str; 5] = [ACCOUNTS_FILE, SPOOL_FILE, "server.lock", "disk-reserve", "revocations"];

/// Restricts the directory to its owner, or logs the reason why this is not possible.
pub(super) fn restrict_to_owner(data: &Path) {
    // An unreadable directory is reported when it is opened; a missing one is created with owner
    // access only.
    let Ok(directory) = DataDirPermissions::read(data) else { return };
    match directory.restrict() {
        Ok(0) => {}
        Ok(count) => tracing::info!(
            path = %data.display(),
            count,
            "removed other users' access to files and folders in the data directory"
        ),
        Err(error) => tracing::warn!(
            path = %data.display(),
            error = format!("{error:#}"),
            "cannot remove other users' access to the data directory"
        ),
    }
}

/// Logs a warning if every user of this machine can read a file that contains a secret. Its group
/// may read it: the key of a certificate is often shared that way.
pub(super) fn warn_of_readers(file: &Path) {
    // An unreadable file is an error where it is used.
    let Ok(metadata) = fs::metadata(file) else { return };
    if mode(&metadata) & READ_BY_ALL != 0 {
        tracing::warn!(
            path = %file.display(),
            mode = format!("{:04o}", mode(&metadata)),
            "this file contains a secret and all users can read it; run `chmod 600` on it"
        );
    }
}

struct DataDirPermissions {
    path: PathBuf,
    mode: u32,
    files: Vec<PathBuf>,
    /// Whether the directory contains nothing else.
    is_own: bool,
}

impl DataDirPermissions {
    fn read(path: &Path) -> io::Result<Self> {
        let mode = mode(&fs::metadata(path)?);
        let mut directory =
            Self { path: path.to_owned(), mode, files: Vec::new(), is_own: mode & STICKY == 0 };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directory.is_own &= FOLDERS.iter().any(|name| entry.file_name() == *name);
            } else {
                directory.files.push(entry.path());
            }
        }
        Ok(directory)
    }

    /// Restricts all files, and returns the number of those that were open. A failure does not
    /// prevent the others from being restricted.
    fn restrict(&self) -> anyhow::Result<u64> {
        let itself = self.restrict_directory();
        let files = self.files.iter().filter(|file| self.is_own || is_of_server(file));
        let files: anyhow::Result<Vec<bool>> =
            files.map(|file| remove_group_and_other_bits(file)).collect();
        let vaults = restrict_vaults(&self.path.join(VAULTS_DIRECTORY));
        itself?;
        let files = files?.into_iter().filter(|was_open| *was_open).count();
        Ok(files as u64 + vaults?)
    }

    fn restrict_directory(&self) -> anyhow::Result<()> {
        let Self { path, mode, .. } = self;
        if mode & OTHERS == 0 {
            return Ok(());
        }
        let (path, mode_before) = (path.display(), format!("{mode:04o}"));
        if !self.is_own {
            tracing::warn!(
                %path,
                mode = mode_before,
                "other users can access the data directory; its permissions were not changed \
                 because it is not used by Warren alone: pass --data a separate directory"
            );
            return Ok(());
        }
        set_mode(&self.path, *mode)?;
        tracing::info!(%path, mode_before, "removed other users' access to the data directory");
        Ok(())
    }
}

fn is_of_server(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    FILES.iter().any(|known| name.starts_with(known))
}

/// Restricts the vaults. A closed directory of vaults was created that way, or was closed after all
/// files in it: it may contain a hundred thousand files, and they are not checked again.
fn restrict_vaults(vaults: &Path) -> anyhow::Result<u64> {
    let Ok(metadata) = fs::metadata(vaults) else { return Ok(0) };
    let mut count = 0;
    for folder in entries(vaults)?.into_iter().filter(|folder| is_of_vaults(folder)) {
        let found = fs::symlink_metadata(&folder).with_context(|| folder.display().to_string())?;
        if found.is_dir() && mode(&found) & OTHERS != 0 {
            for file in entries(&folder)? {
                count += u64::from(remove_group_and_other_bits(&file)?);
            }
            count += u64::from(remove_group_and_other_bits(&folder)?);
        }
    }
    if mode(&metadata) & OTHERS != 0 {
        set_mode(vaults, mode(&metadata))?;
        count += 1;
    }
    Ok(count)
}

/// Returns whether a name consists of two hex digits, like the directories of vaults.
fn is_of_vaults(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    read().with_context(|| folder.display().to_string())
}

/// Removes all permissions except the owner's. `false` if there were none, or the file is gone or a
/// link.
fn remove_group_and_other_bits(path: &Path) -> anyhow::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata.with_context(|| path.display().to_string())?,
    };
    if metadata.is_symlink() || mode(&metadata) & OTHERS == 0 {
        return Ok(false);
    }
    set_mode(path, mode(&metadata))?;
    Ok(true)
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    let set = fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS));
    set.with_context(|| format!("{} (mode {mode:04o})", path.display()))
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}
