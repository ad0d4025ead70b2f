//! What a database tells about itself.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// What a database has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
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
    /// A commit has failed: no writes until the database is reopened.
    pub is_poisoned: bool,
}

/// What is counted as it happens.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) transactions: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) flushes: AtomicU64,
}
