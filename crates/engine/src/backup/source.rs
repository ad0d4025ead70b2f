//! Opens the files that are copied, and detects whether they have changed.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use super::frames::{WalHeader, read_wal_header};
use super::gate::lock_for_copy;
use crate::error::{Result, io};
use crate::system::clock;
use crate::system::side_files::side_file_path;

/// The time of two ticks of a file system's clock, which ticks a hundred times a second on Linux,
/// or more often. A file that was unchanged for two ticks gets another time with its next change.
const TICKS: Duration = Duration::from_millis(20);
/// The time of two ticks on file systems that keep whole seconds, or every second one.
const COARSE_TICKS: Duration = Duration::from_secs(4);

/// A database with its WAL, opened for a copy. The WAL stays locked until this is dropped.
pub(super) struct CopySource<'a> {
    pub(super) path: &'a Path,
    pub(super) file: File,
    pub(super) wal: Option<File>,
    commits: CommitLocation,
}

/// The location of the commits, with a value that differs once they are elsewhere.
#[derive(Debug, PartialEq, Eq)]
enum CommitLocation {
    /// The commits are in the WAL until it is restarted, which gives it another header. Until then,
    /// every change of the file is in the WAL, too.
    InWal(WalHeader),
    /// All commits are in the file, and none in the WAL.
    InFile { bytes: u64, changed_at: SystemTime },
}

impl<'a> CopySource<'a> {
    /// Opens the files, after waiting for a running checkpoint.
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let wal = lock_for_copy(path)?;
        let file = File::open(path).map_err(io(path))?;
        let header = wal.as_ref().map(|wal| read_wal_header(path, wal)).transpose()?.flatten();
        let state = match header {
            Some(header) => CommitLocation::InWal(header),
            None => CommitLocation::settled(path, &file)?,
        };
        Ok(Self { path, file, wal, commits: state })
    }

    /// Checks whether everything that was read since the beginning is of one state: neither file
    /// was replaced, and the commits are still where they were.
    pub(super) fn is_unchanged(&self) -> Result<bool> {
        let wal_path = side_file_path(self.path, "-wal");
        let (Some(file), wal) = (metadata(self.path)?, metadata(&wal_path)?) else {
            return Ok(false);
        };
        let is_named = is_same(&file, &self.file.metadata().map_err(io(self.path))?);
        let is_state = match (&self.commits, &self.wal, wal) {
            (CommitLocation::InWal(header), Some(opened), Some(wal)) => {
                is_same(&wal, &opened.metadata().map_err(io(&wal_path))?)
                    && read_wal_header(self.path, opened)?.as_ref() == Some(header)
            }
            (CommitLocation::InWal(_), ..) => false,
            (CommitLocation::InFile { .. }, _, wal) => {
                wal.is_none_or(|wal| wal.len() == 0)
                    && CommitLocation::in_file(self.path, &file)? == self.commits
            }
        };
        Ok(is_named && is_state)
    }
}

impl CommitLocation {
    /// Waits until the file's time is old enough to change with its next change.
    fn settled(path: &Path, file: &File) -> Result<Self> {
        let state = Self::in_file(path, &file.metadata().map_err(io(path))?)?;
        if let Self::InFile { changed_at, .. } = state {
            let until = clock::now() + rest_of_ticks(changed_at);
            while let Some(rest) = until.checked_duration_since(clock::now()) {
                thread::park_timeout(rest);
            }
        }
        Ok(state)
    }

    fn in_file(path: &Path, metadata: &Metadata) -> Result<Self> {
        let changed_at = metadata.modified().map_err(io(path))?;
        Ok(Self::InFile { bytes: metadata.len(), changed_at })
    }
}

/// Returns how long the ticks after a time still last. A time in the future, from another machine's
/// clock, counts as now.
fn rest_of_ticks(time: SystemTime) -> Duration {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ticks = if since_1970.subsec_nanos() == 0 { COARSE_TICKS } else { TICKS };
    ticks.saturating_sub(clock::age_of(time).unwrap_or_default())
}

/// Returns the metadata of a file, or `None` if it does not exist.
fn metadata(path: &Path) -> Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        metadata => Ok(Some(metadata.map_err(io(path))?)),
    }
}

/// Checks whether both belong to the same file, under any name.
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
