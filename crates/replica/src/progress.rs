//! How far a sync has come.

/// Messages or rows between two words about how far a sync is.
pub(crate) const PROGRESS_EVERY: usize = 1_000;

/// How far a sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// Messages received, of how many.
    Received(u64, u64),
    /// Messages sent, of how many.
    Sent(u64, u64),
    /// Messages merged or rows shown.
    Applied(u64),
}
