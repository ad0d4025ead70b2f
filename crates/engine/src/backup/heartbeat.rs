//! A file next to a database that is being copied, by which its copy shows that it goes on: Format
//! 18, "Heartbeat".
//!
//! Whoever waits for the copy compares the file's time with that of its own last look, by its own
//! clock: the clocks of the two need not agree.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::OFlags;

use crate::system::side_files::{HEARTBEAT_SUFFIX, open_regular, remove_if_there, side_file_path};

/// More of the file is not read.
const TEXT_BYTES_MAX: u64 = 256;

/// The copy's side. Removes the file when it is dropped.
pub(super) struct CopyHeartbeat<'a> {
    database: &'a Path,
    copier: &'a str,
    is_written: bool,
}

impl<'a> CopyHeartbeat<'a> {
    /// `copier`: the command that copies.
    pub(super) fn begin(database: &'a Path, copier: &'a str) -> Self {
        let mut heartbeat = Self { database, copier, is_written: false };
        heartbeat.beat();
        heartbeat
    }

    pub(super) fn beat(&mut self) {
        match self.write() {
            Ok(()) => self.is_written = true,
            // The copy goes on; if it takes long, it may be ignored.
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
        // By its name each time: another copy of the same database may have removed it.
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

/// Removes what a copy that was killed has left. One that goes on writes it again.
pub(crate) fn remove_heartbeat(database: &Path) {
    if let Err(error) = remove_if_there(&side_file_path(database, HEARTBEAT_SUFFIX)) {
        tracing::debug!(%error, "cannot remove a heartbeat");
    }
}

/// When a copy of this database was last seen to go on, by the clock of the file system.
pub(super) fn time_of_last(database: &Path) -> Option<SystemTime> {
    side_file_path(database, HEARTBEAT_SUFFIX).symlink_metadata().ok()?.modified().ok()
}

/// The command and the process that copy this database, as the last heartbeat says.
pub(super) fn copier_of(database: &Path) -> Arc<str> {
    let mut text = String::new();
    let read = open_regular(&side_file_path(database, HEARTBEAT_SUFFIX))
        .and_then(|file| file.take(TEXT_BYTES_MAX).read_to_string(&mut text));
    let line = text.lines().next().unwrap_or_default();
    let is_known = read.is_ok() && !line.is_empty() && !line.contains(char::is_control);
    if is_known { line } else { "an unknown process" }.into()
}
