//! Names, measures and removes the files that belong to a database and are next to it.
//!
//! # Not here
//! - The content of these files: the backup's heartbeat → `backup/heartbeat.rs`; a copy →
//!   `maintenance/compact_copy.rs`.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Result, io};

/// The suffixes in the names of the files that belong to a database: the WAL, its index, the
/// rollback journal, a copy in progress with its journal, a quarantined damaged file with its WAL,
/// and the heartbeat of a backup.
pub const SIDE_FILES: [&str; 8] = [
    "-wal",
    "-shm",
    "-journal",
    COPY_SUFFIX,
    ".compacting-journal",
    DAMAGED_SUFFIX,
    ".damaged-wal",
    HEARTBEAT_SUFFIX,
];

/// The suffix of a damaged file that was quarantined.
pub(crate) const DAMAGED_SUFFIX: &str = ".damaged";

/// The suffix of the heartbeat that a backup writes while it copies the file.
pub(crate) const HEARTBEAT_SUFFIX: &str = ".copying";

/// The suffix of a compact copy in progress.
pub(crate) const COPY_SUFFIX: &str = ".compacting";

/// The suffixes of the files that SQLite creates next to a copy in progress, and of the copy
/// itself.
pub(crate) const COPY_FILES: [&str; 4] = ["-journal", "-wal", "-shm", ""];

/// Returns the path of a side file: `a.db-wal` for `a.db` and `-wal`.
pub fn side_file_path(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the size of a database's WAL; 0 if there is none.
pub fn wal_bytes(database: &Path) -> u64 {
    side_file_path(database, "-wal").metadata().map_or(0, |metadata| metadata.len())
}

/// Returns the size of the file with its WAL.
pub(crate) fn bytes_with_wal(path: &Path) -> Result<u64> {
    Ok(path.metadata().map_err(io(path))?.len() + wal_bytes(path))
}

/// Removes a copy in progress, with the files that SQLite creates next to it.
pub(crate) fn remove_copy(path: &Path) -> Result<()> {
    let removed = COPY_FILES.map(|suffix| remove_if_there(&side_file_path(path, suffix)));
    removed.into_iter().collect()
}

/// Opens a regular file for reading. It neither follows a link nor waits for the other end of a
/// FIFO.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let is_regular = file.metadata()?.is_file();
    if is_regular { Ok(file) } else { Err(std::io::Error::other("not a regular file")) }
}

/// Removes a file. A missing file is not an error.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path)(error)),
        _ => Ok(()),
    }
}
