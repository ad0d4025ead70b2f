//! Maintains the file next to a database by which a copy of it shows its progress: Format 18,
//! "Heartbeat".
//!
//! A process that waits for the copy compares the file's time with the one that it saw last, and
//! measures the interval by its own clock: the clocks of the two need not agree.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::OFlags;

use crate::system::side_files::{HEARTBEAT_SUFFIX, open_regular, remove_if_there, side_file_path};

/// The number of bytes of the file that are read at most.
const TEXT_BYTES_MAX: u64 = 256;

/// The heartbeat that a copy writes; the file is removed when this is dropped.
pub(super) struct CopyHeartbeat<'a> {
    database: &'a Path,
    copier: &'a str,
    is_written: bool,
}

impl<'a> CopyHeartbeat<'a> {
    /// Writes the first heartbeat of a copy. `copier` is the command that copies.
    pub(super) fn begin(database: &'a Path, copier: &'a str) -> Self {
        let mut heartbeat = Self { database, copier, is_written: false };
        heartbeat.beat();
        heartbeat
    }

    pub(super) fn beat(&mut self) {
        match self.write() {
            Ok(()) => self.is_written = true,
            // The copy continues; if it takes long, it may be ignored.
            Err(error) => {
                let path = self.database.display();
                tracing::debug!(%path, %error, "cannot write the heartbeat of a copy");
            }
        }
    }

    fn write(&self) -> std::io::Result<()> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let path = side_file_path(self.database, HEARTBEAT_SUFFIX);
        let mut options = File::options();
        // The file is opened by its name each time: another copy of the same database may have
        // removed it.
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.custom_flags(flags).open(path)?;
        writeln!(file, "{}, process {}", self.copier, std::process::id())
    }
}

impl Drop for CopyHeartbeat<'_> {
    fn drop(&mut self) {
        if self.is_written {
            remove_heartbeat(self.database);
        }
    }
}

/// Removes the heartbeat that a killed copy has left. A running copy writes it again.
pub(crate) fn remove_heartbeat(database: &Path) {
    if let Err(error) = remove_if_there(&side_file_path(database, HEARTBEAT_SUFFIX)) {
        tracing::debug!(%error, "cannot remove a heartbeat");
    }
}

/// Returns the time of the last heartbeat of a copy of this database, by the file system's clock.
pub(super) fn time_of_last(database: &Path) -> Option<SystemTime> {
    side_file_path(database, HEARTBEAT_SUFFIX).symlink_metadata().ok()?.modified().ok()
}

/// Returns the command and the process that copy this database, according to the last heartbeat.
pub(super) fn copier_of(database: &Path) -> Arc<str> {
    let mut text = String::new();
    let read = open_regular(&side_file_path(database, HEARTBEAT_SUFFIX))
        .and_then(|file| file.take(TEXT_BYTES_MAX).read_to_string(&mut text));
    let line = text.lines().next().unwrap_or_default();
    let is_known = read.is_ok() && !line.is_empty() && !line.contains(char::is_control);
    if is_known { line } else { "an unknown process" }.into()
}
