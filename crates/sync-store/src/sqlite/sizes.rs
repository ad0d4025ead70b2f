//! How large vaults' files are, without opening one.

use std::fs::{self, DirEntry, Metadata};
use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;

use accounts::{VAULTS_DIRECTORY, VaultId};
use engine::side_file_path;

use crate::error::{Error, Result};
use crate::sqlite::VaultFiles;

/// A vault's files as the file system has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultFileSizes {
    /// The size of the file, without its WAL.
    pub file_bytes: u64,
    /// The size of its WAL.
    pub wal_bytes: u64,
    /// When one of them was last changed, milliseconds since 1970.
    pub changed_ms: u64,
}

impl VaultFiles {
    /// The files of one vault; `None` if there are none. Two calls of the file system.
    pub(crate) fn file_sizes(&self, vault: &VaultId) -> Option<VaultFileSizes> {
        sizes(&vault.path(&self.data))
    }

    /// The files of all vaults. Looks at each of them: a second for some hundred thousand.
    pub(crate) fn sizes(&self) -> Result<Vec<(VaultId, VaultFileSizes)>> {
        let mut all = Vec::new();
        for folder in entries(&self.data.join(VAULTS_DIRECTORY))? {
            for file in entries(&folder.path())? {
                let name = file.file_name();
                let vault = name.to_str().and_then(|name| name.strip_suffix(".sqlite"));
                let Some(Ok(vault)) = vault.map(str::parse) else { continue };
                // One that is not there any more was removed meanwhile.
                all.extend(sizes(&file.path()).map(|sizes| (vault, sizes)));
            }
        }
        Ok(all)
    }
}

/// What is in a directory; nothing, if it is none or gone.
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

/// 0 where the file system does not know.
fn changed_ms(file: &Metadata) -> u64 {
    let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
