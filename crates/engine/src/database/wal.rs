//! Checkpoints of one database: passes beside the writer, and resets in its turn.
//!
//! # Not here
//! - When they are due → `checkpoint.rs`.

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
    /// Before the WAL is moved into the file. `None`: a copy of both is being made.
    pub(super) fn checkpoint_guard(&self) -> Option<CheckpointGuard> {
        self.wal_file
            .as_ref()
            .map_or_else(|| Some(CheckpointGuard::for_missing_wal()), WalFile::checkpoint_guard)
    }

    /// Copies the WAL into the file while the writer goes on. Called by the scheduler's thread.
    pub(crate) fn checkpoint(&self) {
        let Some(_pass) = self.checkpoint_guard() else {
            // The next batch asks for another.
            self.checkpoints.defer_pass();
            return;
        };
        let open = || open::connect(&self.path, &self.encryption, self.cipher, self.profile, false);
        // Of a poisoned database nobody knows what the WAL holds: it stays as it is, for recovery.
        if let Err(error) = self.checkpoints.pass(|| self.poison.is_set(), open) {
            // The next batch asks for another.
            tracing::warn!(path = %self.path.display(), %error, "checkpoint");
            self.note_failure("checkpoint", &error);
        }
    }

    /// Copies the rest of a WAL that has become long, and gets readers out of its way, so that the
    /// next commit starts it anew.
    pub(super) fn reset_wal(&self, writer: &Writer) {
        if self.poison.is_set() || !self.checkpoints.take_reset() {
            return;
        }
        // A copy is being made: the next pass asks for another.
        let Some(_pass) = self.checkpoint_guard() else { return };
        let start = clock::now();
        // All but what readers look at just now, while they go on.
        let mut copied = self.checkpoints.catch_up(writer.connection());
        let held_at = clock::now();
        if copied.is_ok() {
            // A reader that looks into the WAL keeps its pages from being copied, and where readers
            // follow on each other, one always does.
            self.readers.pause(held_at + SNAPSHOT_AGE_MAX);
            copied = self.checkpoints.catch_up_with_reads_paused(writer.connection());
            // Snapshots from here on lie in the file alone.
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
