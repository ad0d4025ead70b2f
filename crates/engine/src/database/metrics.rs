//! What a database tells about itself: counts since it was opened, and how its files are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Database;
use crate::stats::{DatabaseHealth, DatabaseStats, TransactionCounters};
use crate::system::clock;
use crate::system::side_files::wal_bytes;

impl Database {
    /// What it has done so far.
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

    /// Why it takes no writes, if it does not, until it has recovered.
    pub fn poison_cause(&self) -> Option<Arc<str>> {
        self.poison.cause()
    }

    /// What was found damaged and is not being repaired: a file that was quarantined before is
    /// still there, or the [`DamagePolicy`](crate::DamagePolicy) does not repair.
    pub fn unrepaired_damage(&self) -> Option<Arc<str>> {
        if self.poison.is_set() { None } else { self.damage.description() }
    }

    /// The command and process of a backup that copies it, was in the way of a checkpoint, and has
    /// stalled since: nobody waits for it any more.
    pub fn stalled_backup(&self) -> Option<Arc<str>> {
        self.wal_file.as_ref()?.stalled_copy()
    }

    /// How its files are. Opens nothing and waits for nobody: pages are those that were last
    /// counted, when it was opened, maintained, or looked at between writes.
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

    /// Counts, here and for all databases.
    pub(super) fn count(&self, which: impl Fn(&TransactionCounters) -> &AtomicU64, count: usize) {
        for counters in [&self.counters, &*self.context.totals] {
            which(counters).fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Transactions that were counted as committed were not flushed.
    pub(super) fn count_as_failed(&self, count: usize) {
        for counters in [&self.counters, &*self.context.totals] {
            counters.transactions.fetch_sub(count as u64, Ordering::Relaxed);
            counters.failed.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}
