//! Quarantines a damaged file, and replaces it by a new one with the content that could be read.
//!
//! # Invariants
//! - The damaged file stays unchanged as `NAME.damaged`, with its WAL if that could not be moved. A
//!   file that was quarantined earlier is not overwritten: nothing is repaired then.
//! - At any moment, the name refers to the damaged file or to the complete new one, which is on the
//!   disk.
//!
//! # Not here
//! - Copying the rows → `salvage.rs`. Ensuring that no connection has the file open →
//!   `database/repair.rs`, `database.rs`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::RepairHook;
use super::salvage::{SalvageReport, salvage};
use crate::error::{Error, Result, io};
use crate::maintenance::MaintenanceCounters;
use crate::maintenance::compact_copy::CompactCopy;
use crate::open::migrate::{self, Migration};
use crate::open::profile::Profile;
use crate::open::{self, FileEncryption};
use crate::readers::SNAPSHOT_AGE_MAX;
use crate::system::clock;
use crate::system::directory::{directory_of, sync_directory};
use crate::system::directory_lock::DirectoryLock;
use crate::system::side_files::{DAMAGED_SUFFIX, remove_if_there, side_file_path};

/// The replacement of a database's damaged file, with all that it requires.
pub(crate) struct FileRepair<'a> {
    pub(crate) path: &'a Path,
    pub(crate) encryption: &'a FileEncryption,
    pub(crate) profile: &'a Profile,
    pub(crate) migrations: &'a [Migration],
    pub(crate) finish: &'a RepairHook,
}

impl FileRepair<'_> {
    /// Checks whether a damaged file may be quarantined, which is so unless an earlier one exists.
    pub(crate) fn is_possible(path: &Path) -> bool {
        !quarantine_path(path).exists()
    }

    /// Repairs the file, which this process must not have open. Returns [`Error::Busy`] if another
    /// process has it open.
    pub(crate) fn run(&self, directory: &DirectoryLock) -> Result<()> {
        let path = self.path;
        let metadata = path.metadata().map_err(io(path))?;
        let (copy, salvaged) =
            CompactCopy::fill(path, &metadata, |made| self.fill(made, directory))?;
        self.quarantine()?;
        let made = copy.finish();
        fs::rename(&made, path).map_err(io(path))?;
        sync_directory(directory_of(path))?;
        let SalvageReport { rows_count, gaps_count } = salvaged;
        tracing::warn!(
            path = %path.display(), put_aside = %quarantine_path(path).display(), rows_count, gaps_count,
            "quarantined a damaged database and copied its readable content to a new file"
        );
        Ok(())
    }

    fn fill(&self, made: &Path, directory: &DirectoryLock) -> Result<SalvageReport> {
        let Self { path, encryption, profile, migrations, finish } = self;
        let cipher = open::find_cipher(path, encryption);
        let new_cipher =
            cipher.as_ref().map_or_else(|_| encryption.default_cipher(), |found| *found);
        let mut target = open::connect_locked(made, encryption, new_cipher, profile, directory)?;
        migrate::migrate(&mut target, migrations)?;
        let source = match cipher.and_then(|cipher| open::open_damaged(path, encryption, cipher)) {
            Err(error) if error.is_damage() => None,
            source => Some(source?),
        };
        let salvaged = salvage(source.as_ref(), &target, |db| finish(db))?;
        target.close().map_err(|(_, source)| Error::Sqlite { context: "close", source })?;
        Ok(salvaged)
    }

    fn quarantine(&self) -> Result<()> {
        let path = self.path;
        let aside = quarantine_path(path);
        // A copy is used where a file system has no hard links.
        if let Err(error) = fs::hard_link(path, &aside) {
            if error.kind() == ErrorKind::AlreadyExists {
                return Err(io(&aside)(error));
            }
            fs::copy(path, &aside).map_err(io(&aside))?;
            fs::File::open(&aside).and_then(|file| file.sync_all()).map_err(io(&aside))?;
        }
        let wal = side_file_path(path, "-wal");
        if wal.exists() {
            fs::rename(&wal, side_file_path(&aside, "-wal")).map_err(io(&wal))?;
        }
        remove_if_there(&side_file_path(path, "-shm"))?;
        sync_directory(directory_of(path))
    }
}

/// Returns the path under which a database's damaged file is quarantined.
pub fn quarantine_path(path: &Path) -> PathBuf {
    side_file_path(path, DAMAGED_SUFFIX)
}

/// Repairs a file that does not open. Returns [`Error::AlreadyQuarantined`] if an earlier damaged
/// file still exists.
pub(crate) fn repair_unopened(
    repair: &FileRepair<'_>,
    error: &Error,
    counters: &MaintenanceCounters,
) -> Result<()> {
    let path = repair.path.display();
    if !FileRepair::is_possible(repair.path) {
        tracing::error!(%path, %error, "not repaired: an earlier .damaged file still exists");
        return Err(Error::AlreadyQuarantined { path: repair.path.to_owned() });
    }
    tracing::error!(%path, %error, "cannot open a database");
    counters.add_damaged();
    repair.run(&DirectoryLock::exclusive(repair.path, clock::now() + SNAPSHOT_AGE_MAX)?)?;
    counters.add_repaired();
    Ok(())
}
