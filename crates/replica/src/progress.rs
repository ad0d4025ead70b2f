//! Defines the progress of a sync.

/// The number of messages or rows between two progress reports.
pub(crate) const PROGRESS_EVERY: usize = 1_000;

/// The progress of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// The number of messages received so far, and in total.
    Received(u64, u64),
    /// The number of messages sent so far, and in total.
    Sent(u64, u64),
    /// The number of messages merged or rows written so far.
    Applied(u64),
}
