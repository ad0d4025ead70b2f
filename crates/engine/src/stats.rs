//! Defines the statistics and the health figures that a database reports.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::maintenance::{MaintenanceStats, PageCounts};

/// The counters of a database since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseStats {
    /// The number of transactions that were committed.
    pub transactions: u64,
    /// The number of transactions that were run, or waited, and got an error.
    pub failed: u64,
    /// The number of transactions that were not accepted: the queue was full or the database
    /// closed.
    pub refused: u64,
    /// The number of batches; on average, `transactions / batches` share a commit.
    pub batches: u64,
    /// The number of WAL flushes to the disk for callers who asked for it.
    pub flushes: u64,
    /// The largest number of transactions that have waited at once.
    pub queue_count_max_seen: usize,
    /// The number of open read-only connections.
    pub readers_open: usize,
    /// The maximum length of the WAL, in pages.
    pub wal_pages_max_seen: u32,
    /// The number of times that the writer paused to restart the WAL.
    pub checkpoint_pauses: u64,
    /// The longest pause of the writer for restarting the WAL.
    pub checkpoint_pause_max: Duration,
    /// The longest time that reads waited while the writer restarted the WAL.
    pub read_pause_max: Duration,
    /// The number of pages that were copied while reads waited for the WAL to be restarted.
    pub pages_copied_with_reads_paused: u64,
    /// Whether a commit, flush or checkpoint has failed, so that writes are refused until recovery.
    pub is_poisoned: bool,
}

/// The counters of all databases of a registry since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTotals {
    /// The number of transactions that were committed.
    pub transactions: u64,
    /// The number of transactions that were run, or waited, and got an error.
    pub failed: u64,
    /// The number of transactions that were not accepted.
    pub refused: u64,
    /// The number of batches; on average, `transactions / batches` share a commit.
    pub batches: u64,
    /// The number of WAL flushes to the disk.
    pub flushes: u64,
}

/// The state of a database's files, and the conditions that impair it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of pages of the file, as last counted.
    pub pages: u64,
    /// The number of pages that hold no data, as last counted.
    pub free_pages: u64,
    /// The present size of the WAL in bytes.
    pub wal_bytes: u64,
    /// The running time of the longest present read, or zero if none runs. A read keeps the WAL
    /// from being restarted.
    pub longest_read: Duration,
    /// Whether a commit, flush or checkpoint has failed, so that writes are refused until recovery.
    pub is_poisoned: bool,
    /// Whether a part of the file does not read back as it was written, and has not been repaired.
    pub is_damaged: bool,
    /// The work that maintenance has done since the database was opened.
    pub maintenance: MaintenanceStats,
    /// The time since the last maintenance, if there was any since the database was opened.
    pub maintenance_age: Option<Duration>,
}

impl DatabaseHealth {
    /// Returns the share of the file's pages that hold no data, from 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        let Self { page_bytes, pages, free_pages, .. } = *self;
        PageCounts { bytes_each: page_bytes, all: pages, free: free_pages }.fragmentation()
    }
}

/// Counters that are updated as events happen, for one database or for all.
#[derive(Default)]
pub(crate) struct TransactionCounters {
    pub(crate) transactions: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) flushes: AtomicU64,
}
