//! The messages that are sent: evenly apart in time, contents that do not compress well.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use crdt::{Message, Node, Timestamp};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Of the first message: long ago, so that no server finds its clock ahead.
pub(crate) const FIRST_MS: u64 = 1_750_000_000_000;
/// Contents are pieces of so many random characters.
const POOL_BYTES: usize = 1 << 20;

/// Makes messages; several callers may share it.
#[derive(Debug)]
pub(crate) struct Changes {
    pool: Bytes,
    content_bytes: usize,
    step_ms: u64,
    next: AtomicU64,
}

impl Changes {
    /// The numbers of [`Changes::next`] begin at `first`.
    pub(crate) fn new(content_bytes: usize, first: u64) -> Self {
        Self::apart(content_bytes, first, 1)
    }

    /// With so many milliseconds from one to the next.
    pub(crate) fn apart(content_bytes: usize, first: u64, step_ms: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        // Letters, so that it can stand in JSON as it is.
        let pool = (0..POOL_BYTES + content_bytes).map(|_| random.random_range(b'a'..=b'z'));
        Self { pool: pool.collect(), content_bytes, step_ms, next: AtomicU64::new(first) }
    }

    /// The next `count`, as this node makes them.
    pub(crate) fn next(&self, count: usize, node: Node) -> anyhow::Result<Vec<Message>> {
        let first = self.next.fetch_add(count as u64, Ordering::Relaxed);
        (first..first + count as u64).map(|index| self.at(index, node)).collect()
    }

    /// Message number `index`.
    pub(crate) fn at(&self, index: u64, node: Node) -> anyhow::Result<Message> {
        let timestamp = Timestamp::new(FIRST_MS + index * self.step_ms, 0, node);
        let timestamp = timestamp.context("a time within the years")?;
        // Odd, so that neighbours have other contents and every place is used.
        let start = usize::try_from(index * 7_919 % POOL_BYTES as u64)?;
        let content = self.pool.slice(start..start + self.content_bytes);
        Ok(Message { timestamp, content })
    }
}
