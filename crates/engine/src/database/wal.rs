//! Runs the checkpoints of one database: passes next to the writer, and resets on the writer's
//! turn.
//!
//! # Not here
//! - The time at which they are due → `checkpoint.rs`.

use std::sync::atomic::Ordering;

use super::Database;
use crate::backup::CheckpointGuard;
use crate::error::sqlite;
use crate::open;
use crate::readers::SNAPSHOT_AGE_MAX;
use crate::system::clock;
use crate::write::wal_file::WalFile;
use crate::write::writer::Writer;

impl Database {
    /// Locks the WAL before it is moved into the file. Returns `None` while both are copied.
    pub(super) fn checkpoint_guard(&self) -> Option<CheckpointGuard> {
        self.wal_file
            .as_ref()
            .map_or_else(|| Some(CheckpointGuard::for_missing_wal()), WalFile::checkpoint_guard)
    }

    /// Copies the WAL into the file while the writer continues. Called by the scheduler's thread.
    pub(crate) fn checkpoint(&self) {
        let Some(_pass) = self.checkpoint_guard() else {
            // The next batch requests another pass.
            self.checkpoints.defer_pass();
            return;
        };
        let open = || open::connect(&self.path, &self.encryption, self.cipher, self.profile, false);
        // The WAL of a poisoned database has uncertain content, and stays unchanged for recovery.
        if let Err(error) = self.checkpoints.pass(|| self.poison.is_set(), open) {
            // The next batch requests another pass.
            tracing::warn!(path = %self.path.display(), %error, "checkpoint");
            self.note_failure("checkpoint", &error);
        }
    }

    /// Copies the rest of a WAL that has become long, and pauses the readers that use it, so that
    /// the next commit restarts the WAL.
    pub(super) fn reset_wal(&self, writer: &Writer) {
        if self.poison.is_set() || !self.checkpoints.take_reset() {
            return;
        }
        // A copy is in progress; the next pass requests another reset.
        let Some(_pass) = self.checkpoint_guard() else { return };
        let start = clock::now();
        // Copies all pages except those that readers use at this moment, while reads continue.
        let mut copied = self.checkpoints.catch_up(writer.connection());
        let held_at = clock::now();
        if copied.is_ok() {
            // A reader that uses the WAL keeps its pages from being copied, and where readers
            // follow each other without a gap, one always does.
            self.readers.pause(held_at + SNAPSHOT_AGE_MAX);
            copied = self.checkpoints.catch_up_with_reads_paused(writer.connection());
            // Snapshots from here on need only the file.
            self.epoch.fetch_add(1, Ordering::Release);
            self.readers.resume();
        }
        if let Err(error) = copied.map_err(sqlite("checkpoint")) {
            tracing::warn!(path = %self.path.display(), %error, "checkpoint");
            self.note_failure("checkpoint", &error);
        }
        let end = clock::now();
        self.checkpoints.paused(end - start, end - held_at);
    }
}
