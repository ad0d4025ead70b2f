//! Generates the messages that are sent, with contents and times like those of devices.

mod budget;

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use crdt::{Message, NodeId, Timestamp};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

pub(crate) use self::budget::MESSAGES_PER_TRANSACTION;

/// The time of the first message, in September 2020, so that even years of messages are not ahead
/// of a server's clock.
pub(crate) const FIRST_MS: u64 = 1_600_000_000_000;
/// The size of the pool of random characters from which contents are cut.
const POOL_BYTES: usize = 1 << 20;

/// The content of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// This many letters, which do not compress well.
    Letters(usize),
    /// Transactions of a budget, in the form of Actual's apps.
    Budget,
}

/// The times of messages, by the clocks of the devices that create them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageSchedule {
    /// The number of messages in one millisecond, distinguished by the counter.
    pub(crate) at_once: u64,
    /// The time between such groups, for the seeded messages of a user.
    pub(crate) before_ms: u64,
    /// The time between such groups, for the messages after the seeded ones.
    pub(crate) step_ms: u64,
}

impl MessageSchedule {
    /// Returns a schedule of single messages at equal intervals.
    pub(crate) fn even(step_ms: u64) -> Self {
        Self { at_once: 1, before_ms: step_ms, step_ms }
    }
}

/// Generates messages; several callers may share it.
#[derive(Debug)]
pub(crate) struct MessageGenerator {
    contents: ContentGenerator,
    pace: MessageSchedule,
    /// The number of messages that a user already has.
    seeded: u64,
    next: AtomicU64,
}

#[derive(Debug)]
enum ContentGenerator {
    Letters { pool: Bytes, length: usize },
    Budget,
}

impl MessageGenerator {
    /// Returns a generator of letters, one millisecond apart. The numbers of
    /// [`MessageGenerator::next`] begin at `first`.
    pub(crate) fn new(content_bytes: usize, first: u64) -> Self {
        Self::apart(content_bytes, first, 1)
    }

    /// Returns a generator of letters, `step_ms` milliseconds apart.
    pub(crate) fn apart(content_bytes: usize, first: u64, step_ms: u64) -> Self {
        Self::of(ContentKind::Letters(content_bytes), first, MessageSchedule::even(step_ms))
    }

    /// Returns a generator whose numbers begin after the first `seeded` messages.
    pub(crate) fn of(content: ContentKind, seeded: u64, pace: MessageSchedule) -> Self {
        let contents = match content {
            ContentKind::Budget => ContentGenerator::Budget,
            ContentKind::Letters(length) => {
                let mut random = SmallRng::seed_from_u64(1);
                // Letters need no escapes in JSON.
                let pool = (0..POOL_BYTES + length).map(|_| random.random_range(b'a'..=b'z'));
                ContentGenerator::Letters { pool: pool.collect(), length }
            }
        };
        Self { contents, pace, seeded, next: AtomicU64::new(seeded) }
    }

    /// Returns the next `count` messages, created by this node.
    pub(crate) fn next(&self, count: usize, node: NodeId) -> anyhow::Result<Vec<Message>> {
        let first = self.next.fetch_add(count as u64, Ordering::Relaxed);
        (first..first + count as u64).map(|index| self.at(index, node)).collect()
    }

    /// Returns message number `index`.
    pub(crate) fn at(&self, index: u64, node: NodeId) -> anyhow::Result<Message> {
        let counter = u16::try_from(index % self.pace.at_once)?;
        let timestamp = Timestamp::new(FIRST_MS + self.after_ms(index), counter, node);
        let timestamp = timestamp.context("the time is out of range")?;
        let content = match &self.contents {
            ContentGenerator::Budget => budget::content(index),
            ContentGenerator::Letters { pool, length } => {
                // The factor is odd, so that neighbors have different contents and every position
                // is used.
                let start = usize::try_from(index * 7_919 % POOL_BYTES as u64)?;
                pool.slice(start..start + length)
            }
        };
        Ok(Message { timestamp, content })
    }

    /// Returns the milliseconds from the first message to number `index`.
    pub(crate) fn after_ms(&self, index: u64) -> u64 {
        let MessageSchedule { at_once, before_ms, step_ms } = self.pace;
        let (moment, before) = (index / at_once, self.seeded.div_ceil(at_once));
        moment.min(before) * before_ms + moment.saturating_sub(before) * step_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_where_what_was_before_ends() {
        let pace = MessageSchedule { at_once: 10, before_ms: 1_000, step_ms: 8 };
        let changes = MessageGenerator::of(ContentKind::Budget, 25, pace);
        let at = |index| {
            let timestamp = changes.at(index, NodeId(1)).unwrap().timestamp;
            (timestamp.millis() - FIRST_MS, timestamp.counter())
        };
        assert_eq!([0, 9, 10, 24].map(at), [(0, 0), (0, 9), (1_000, 0), (2_000, 4)]);
        assert_eq!([29, 30, 41].map(at), [(2_000, 9), (3_000, 0), (3_008, 1)]);
        let even = MessageGenerator::new(10, 5);
        assert_eq!(even.next(2, NodeId(1)).unwrap()[1].timestamp.millis(), FIRST_MS + 6);
    }
}
