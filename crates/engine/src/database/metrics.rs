//! Reports on one database: its counters since it was opened, and the state of its files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Database;
use crate::stats::{DatabaseHealth, DatabaseStats, TransactionCounters};
use crate::system::clock;
use crate::system::side_files::wal_bytes;

impl Database {
    /// Returns the counters of the database since it was opened.
    pub fn stats(&self) -> DatabaseStats {
        let wal = &self.checkpoints.counters;
        DatabaseStats {
            transactions: self.counters.transactions.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            refused: self.counters.refused.load(Ordering::Relaxed),
            batches: self.counters.batches.load(Ordering::Relaxed),
            flushes: self.counters.flushes.load(Ordering::Relaxed),
            queue_count_max_seen: self.queue.count_max_seen(),
            readers_open: self.readers.open_count(),
            wal_pages_max_seen: wal.frames_max.load(Ordering::Relaxed),
            checkpoint_pauses: wal.pauses.load(Ordering::Relaxed),
            checkpoint_pause_max: Duration::from_micros(
                wal.longest_pause_us.load(Ordering::Relaxed),
            ),
            read_pause_max: Duration::from_micros(
                wal.longest_read_pause_us.load(Ordering::Relaxed),
            ),
            pages_copied_with_reads_paused: wal.copied_with_reads_paused.load(Ordering::Relaxed),
            is_poisoned: self.poison.is_set(),
        }
    }

    /// Returns the reason why the database refuses writes until it has recovered, if it does.
    pub fn poison_cause(&self) -> Option<Arc<str>> {
        self.poison.cause()
    }

    /// Returns the damage that was found and is not being repaired: an earlier damaged file still
    /// exists, or the [`DamagePolicy`](crate::DamagePolicy) does not repair.
    pub fn unrepaired_damage(&self) -> Option<Arc<str>> {
        if self.poison.is_set() { None } else { self.damage.description() }
    }

    /// Returns the command and process of a backup of this database that has blocked a checkpoint
    /// and then stalled: the database no longer waits for it.
    pub fn stalled_backup(&self) -> Option<Arc<str>> {
        self.wal_file.as_ref()?.stalled_copy()
    }

    /// Returns the state of the database's files. It opens no file and waits for no read or write:
    /// the page counts are from the time when the database was opened, maintained, or measured
    /// between writes.
    pub fn health(&self) -> DatabaseHealth {
        let pages = *self.pages.lock().expect("no code panics while it holds this lock");
        DatabaseHealth {
            page_bytes: pages.bytes_each,
            pages: pages.all,
            free_pages: pages.free,
            wal_bytes: wal_bytes(&self.path),
            longest_read: self.readers.longest_read(clock::now()),
            is_poisoned: self.poison.is_set(),
            is_damaged: self.damage.description().is_some(),
            maintenance: self.maintenance.counters.stats(),
            maintenance_age: self.maintenance.age(),
        }
    }

    /// Adds to a counter, of this database and of all databases.
    pub(super) fn count(&self, which: impl Fn(&TransactionCounters) -> &AtomicU64, count: usize) {
        for counters in [&self.counters, &*self.context.totals] {
            which(counters).fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Counts transactions as failed that were counted as committed, because their flush failed.
    pub(super) fn count_as_failed(&self, count: usize) {
        for counters in [&self.counters, &*self.context.totals] {
            counters.transactions.fetch_sub(count as u64, Ordering::Relaxed);
            counters.failed.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}
