//! What a database tells about itself.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::maintenance::{MaintenanceStats, PageCounts};

/// What a database has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseStats {
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions that were run, or waited, and got an error.
    pub failed: u64,
    /// Transactions that were not accepted: the queue was full or the database closed.
    pub refused: u64,
    /// Batches; `transactions / batches` share a commit.
    pub batches: u64,
    /// Times that the WAL was flushed to the disk for callers who asked for it.
    pub flushes: u64,
    /// The longest that the queue has been.
    pub queue_count_max_seen: usize,
    /// Open read-only connections.
    pub readers_open: usize,
    /// The longest that the WAL has been, in pages.
    pub wal_pages_max_seen: u32,
    /// How often the writer stood still to start the WAL anew.
    pub checkpoint_pauses: u64,
    /// The longest of these pauses.
    pub checkpoint_pause_max: Duration,
    /// The longest that reads waited in one of them.
    pub read_pause_max: Duration,
    /// Pages that were copied in these pauses while reads waited.
    pub pages_copied_with_reads_paused: u64,
    /// A commit or a flush has failed: no writes until the database has recovered.
    pub is_poisoned: bool,
}

/// What all databases of a registry have done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTotals {
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions that were run, or waited, and got an error.
    pub failed: u64,
    /// Transactions that were not accepted.
    pub refused: u64,
    /// Batches; `transactions / batches` share a commit.
    pub batches: u64,
    /// Times that a WAL was flushed to the disk.
    pub flushes: u64,
}

/// How a database's files are, and what is in their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of the file, as last counted.
    pub pages: u64,
    /// Those of them that hold nothing.
    pub free_pages: u64,
    /// The size of the WAL now.
    pub wal_bytes: u64,
    /// How long the read has been running that runs longest; zero if none runs. It keeps the WAL
    /// from being started anew.
    pub longest_read: Duration,
    /// A commit or a flush has failed: no writes until the database has recovered.
    pub is_poisoned: bool,
    /// Something in its file does not read back as it was written, and nothing has repaired it.
    pub is_damaged: bool,
    /// What maintenance has done since the database was opened.
    pub maintenance: MaintenanceStats,
    /// How long ago it was last maintained, if it was since it was opened.
    pub maintenance_age: Option<Duration>,
}

impl DatabaseHealth {
    /// The share of the file's pages that hold nothing, 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        let Self { page_bytes, pages, free_pages, .. } = *self;
        PageCounts { bytes_each: page_bytes, all: pages, free: free_pages }.fragmentation()
    }
}

/// What is counted as it happens: of one database, or of all.
#[derive(Default)]
pub(crate) struct TransactionCounters {
    pub(crate) transactions: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) flushes: AtomicU64,
}
