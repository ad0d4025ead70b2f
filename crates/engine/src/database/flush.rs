//! Flushes the WAL between a batch's commit and its answers, on a separate thread.
//!
//! # Invariants
//! - A flush that succeeds after another has failed proves nothing, until the database has
//!   recovered.
//!
//! # Not here
//! - The file that is flushed, and the proof → `crate::write::wal_file`.

use std::sync::Arc;

use super::Database;
use crate::error::{Error, Result};
use crate::write::job::UnflushedBatch;
use crate::write::wal_file::FlushProof;

impl Database {
    pub(super) fn flush_later(&self, batch: UnflushedBatch) {
        // The queue is never full and never closed; and a refused batch answers with an error.
        if matches!(self.flushes.push(batch), Ok(true)) {
            let this = self.this.upgrade().expect("who runs a batch holds it");
            self.context.flush_queue.push(this);
        }
    }

    /// Flushes the WAL, and completes the batches whose commits it held. Returns whether more
    /// batches have arrived since. Called by a flusher thread, and when the database is closed.
    pub(crate) fn flush(&self) -> bool {
        let batches = self.flushes.take(usize::MAX);
        if !batches.is_empty() {
            let flushed = self.flush_wal();
            self.count(|counters| &counters.flushes, 1);
            for batch in batches {
                let ended = match &flushed {
                    Ok(proof) => batch.acknowledge(proof),
                    Err(cause) => {
                        let poisoned = || Error::Poisoned { cause: Arc::clone(cause) };
                        let (ended, failed_count) = batch.fail(poisoned);
                        self.count_as_failed(failed_count);
                        ended
                    }
                };
                self.context.completions.notify(ended);
            }
        }
        self.flushes.unschedule()
    }

    /// Flushes the WAL. A flush that succeeds after another has failed proves nothing.
    fn flush_wal(&self) -> Result<FlushProof, Arc<str>> {
        if let Some(cause) = self.poison.cause() {
            return Err(cause);
        }
        let file = self.wal_file.as_ref().expect("only what is in a WAL waits for a flush");
        match file.flush() {
            Ok(proof) => self.poison.cause().map_or(Ok(proof), Err),
            Err(error) => Err(self.poison(format!("flush: {error}"))),
        }
    }
}
