//! Reads the sizes of vaults' files without opening them.

use std::fs::{self, DirEntry, Metadata};
use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;

use accounts::{VAULTS_DIRECTORY, VaultId};
use engine::side_file_path;

use crate::error::{Error, Result};
use crate::sqlite::VaultFiles;

/// The sizes of a vault's files in the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultFileSizes {
    /// The size of the file without its WAL.
    pub file_bytes: u64,
    /// The size of the file's WAL.
    pub wal_bytes: u64,
    /// The last modification time of either, in milliseconds since 1970.
    pub changed_ms: u64,
}

impl VaultFiles {
    /// Returns the sizes of one vault's files, or `None` if there are none. This makes two calls of
    /// the file system.
    pub(crate) fn file_sizes(&self, vault: &VaultId) -> Option<VaultFileSizes> {
        sizes(&vault.path(&self.data))
    }

    /// Returns the sizes of all vaults' files. Reading them takes about a second for a few hundred
    /// thousand.
    pub(crate) fn sizes(&self) -> Result<Vec<(VaultId, VaultFileSizes)>> {
        let mut all = Vec::new();
        for folder in entries(&self.data.join(VAULTS_DIRECTORY))? {
            for file in entries(&folder.path())? {
                let name = file.file_name();
                let vault = name.to_str().and_then(|name| name.strip_suffix(".sqlite"));
                let Some(Ok(vault)) = vault.map(str::parse) else { continue };
                // A file that is missing now was removed in the meantime.
                all.extend(sizes(&file.path()).map(|sizes| (vault, sizes)));
            }
        }
        Ok(all)
    }
}

/// Returns the entries of a directory, or none if it is missing or not a directory.
fn entries(path: &Path) -> Result<Vec<DirEntry>> {
    let entries = fs::read_dir(path).and_then(Iterator::collect);
    match entries {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        entries => entries.map_err(|source| Error::Io { path: path.to_owned(), source }),
    }
}

fn sizes(path: &Path) -> Option<VaultFileSizes> {
    let file = path.metadata().ok()?;
    let wal = side_file_path(path, "-wal").metadata().ok();
    Some(VaultFileSizes {
        file_bytes: file.len(),
        wal_bytes: wal.as_ref().map_or(0, Metadata::len),
        changed_ms: changed_ms(&file).max(wal.as_ref().map_or(0, changed_ms)),
    })
}

/// Returns the modification time, or 0 if the file system does not have it.
fn changed_ms(file: &Metadata) -> u64 {
    let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
