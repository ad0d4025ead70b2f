//! Implements the hybrid logical clock, whose readings respect both wall time and causality.
//!
//! A reading is never below those that this device has issued or seen, so a change that was made
//! after seeing another sorts after it, whatever the wall clocks show (Kulkarni et al., "Logical
//! Physical Clocks"). The clock continues from any reading that it has seen, without a limit on how
//! far that is ahead: a wrong wall clock somewhere makes readings run ahead, in order, until time
//! has caught up.
//!
//! # Invariants
//! - Readings strictly increase, whatever wall times are passed in, and whatever was seen.
//! - No call fails: a full millisecond continues in the next one.

use crate::{NodeId, Timestamp};

/// The maximum time that a message may be ahead of a server's clock, and of all that a vault holds:
/// five minutes.
pub const DRIFT_MS_MAX: u64 = 300_000;

/// The start of the year 9000. Later readings and wall clocks are not followed: no device counts
/// through the thousand years after it.
const FOLLOWED_MS_MAX: u64 = 221_845_392_000_000;

/// A hybrid logical clock of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HybridLogicalClock {
    node: NodeId,
    /// The hybrid time of the last reading (see [`Timestamp::hybrid_time`]).
    hybrid_time: u64,
}

impl HybridLogicalClock {
    /// Creates a clock that continues after `last`, the newest reading of its device or seen by it.
    pub fn new(node: NodeId, last: Timestamp) -> Self {
        Self { node, hybrid_time: last.hybrid_time() }
    }

    /// Returns the node id of the device.
    pub fn node_id(&self) -> NodeId {
        self.node
    }

    /// Returns the last reading, with this device's node id.
    pub fn last(&self) -> Timestamp {
        let last = Timestamp::first_at(self.hybrid_time).expect("no moment is past the year 9999");
        last.with_node_id(self.node)
    }

    /// Returns the reading for a change made at `at_ms`.
    pub fn next_timestamp(&mut self, at_ms: u64) -> Timestamp {
        // A full counter plus one is the next millisecond.
        self.hybrid_time = (self.hybrid_time + 1).max(first_moment(at_ms.min(FOLLOWED_MS_MAX)));
        self.last()
    }

    /// Observes a remote reading, so that later readings sort after it.
    pub fn observe(&mut self, remote: Timestamp) {
        if remote.millis() <= FOLLOWED_MS_MAX {
            self.hybrid_time = self.hybrid_time.max(remote.hybrid_time());
        }
    }
}

fn first_moment(millis: u64) -> u64 {
    Timestamp::new(millis, 0, NodeId(0)).expect("before the year 9999").hybrid_time()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODE: NodeId = NodeId(1);

    fn at(millis: u64, counter: u16) -> Timestamp {
        Timestamp::new(millis, counter, NodeId(2)).unwrap()
    }

    fn parts(reading: Timestamp) -> (u64, u16) {
        (reading.millis(), reading.counter())
    }

    #[test]
    fn counter_counts_within_a_millisecond_and_restarts_in_the_next() {
        let mut clock = HybridLogicalClock::new(NODE, Timestamp::ZERO);
        let readings = [10, 10, 9, 11].map(|at| parts(clock.next_timestamp(at)));
        assert_eq!(readings, [(10, 0), (10, 1), (10, 2), (11, 0)]);
    }

    #[test]
    fn what_was_seen_is_followed_however_far_ahead_it_is() {
        let mut clock = HybridLogicalClock::new(NODE, at(10, 3));
        clock.observe(at(9, 7));
        assert_eq!(parts(clock.next_timestamp(5)), (10, 4));
        clock.observe(at(1 << 45, 7));
        assert_eq!(parts(clock.next_timestamp(11)), (1 << 45, 8));
    }

    #[test]
    fn a_full_counter_goes_on_in_the_next_millisecond() {
        let mut clock = HybridLogicalClock::new(NODE, Timestamp::ZERO);
        clock.observe(at(10, u16::MAX));
        assert_eq!(parts(clock.next_timestamp(10)), (11, 0));
    }

    #[test]
    fn the_end_of_time_is_not_followed() {
        let end = Timestamp::new(Timestamp::MILLIS_MAX, u16::MAX, NODE).unwrap();
        let mut clock = HybridLogicalClock::new(NODE, at(10, 0));
        clock.observe(end);
        assert_eq!(parts(clock.next_timestamp(10)), (10, 1));
        assert_eq!(parts(clock.next_timestamp(u64::MAX)), (FOLLOWED_MS_MAX, 0));
        clock.observe(at(FOLLOWED_MS_MAX, u16::MAX));
        assert!(clock.next_timestamp(u64::MAX) > at(FOLLOWED_MS_MAX, u16::MAX));
        assert_eq!(at(FOLLOWED_MS_MAX, 0).to_string()[..24], *"9000-01-01T00:00:00.000Z");
    }

    proptest! {
        #[test]
        fn readings_strictly_increase_under_any_skew(
            steps in prop::collection::vec(
                (any::<u64>(), prop::option::of((0..=FOLLOWED_MS_MAX, any::<u16>()))), 1..200,
            ),
        ) {
            let mut clock = HybridLogicalClock::new(NODE, Timestamp::ZERO);
            let mut last = clock.last();
            for (now, remote) in steps {
                if let Some((millis, counter)) = remote {
                    clock.observe(at(millis, counter));
                    last = last.max(at(millis, counter).with_node_id(NODE));
                }
                let reading = clock.next_timestamp(now);
                prop_assert!(reading > last);
                last = reading;
            }
        }
    }
}
