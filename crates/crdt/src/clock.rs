//! The hybrid logical clock: readings that respect both wall time and causality.
//!
//! A reading is never below what this device has given or seen, so a change that was made after
//! seeing another sorts after it, however the wall clocks stand. The rules are those of Kulkarni et
//! al., "Logical Physical Clocks", as Actual Budget applies them (`docs/formats/1-timestamp.md`).
//!
//! # Invariants
//! - Readings strictly increase, whatever wall times are passed in.
//! - A refused call leaves the clock as it was.

use crate::{Node, Timestamp};

/// How far the clock may run ahead of wall time: five minutes.
pub const DRIFT_MS_MAX: u64 = 300_000;

/// A hybrid logical clock of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    node: Node,
    millis: u64,
    counter: u16,
}

/// Why a clock refuses a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// The reading would be more than [`DRIFT_MS_MAX`] ahead of wall time.
    #[error("the clock would be {ahead_ms} ms ahead, {DRIFT_MS_MAX} are allowed")]
    Drift {
        /// Milliseconds ahead.
        ahead_ms: u64,
    },
    /// More than 65,536 readings in one millisecond.
    #[error("the millisecond {millis} has no readings left")]
    Overflow {
        /// The millisecond that is full.
        millis: u64,
    },
}

impl Clock {
    /// A clock that continues after `last`, the newest reading that its device has given or seen.
    pub fn new(node: Node, last: Timestamp) -> Self {
        Self { node, millis: last.millis(), counter: last.counter() }
    }

    /// The device.
    pub fn node(&self) -> Node {
        self.node
    }

    /// The last reading, under this device's name.
    pub fn last(&self) -> Timestamp {
        Timestamp::new(self.millis, self.counter, self.node).expect("checked by every step")
    }

    /// The reading for a change made at `at_ms`; `now_ms` bounds the drift.
    ///
    /// They differ where changes are stamped later than they are made (`replica`'s outbox).
    pub fn send(&mut self, at_ms: u64, now_ms: u64) -> Result<Timestamp, ClockError> {
        let millis = self.millis.max(at_ms);
        let counter = if millis == self.millis { u32::from(self.counter) + 1 } else { 0 };
        self.step(millis, counter, now_ms)
    }

    /// Takes note of a remote reading, so that what follows sorts after it.
    pub fn receive(&mut self, remote: Timestamp, now_ms: u64) -> Result<Timestamp, ClockError> {
        let millis = self.millis.max(remote.millis()).max(now_ms);
        let own = (millis == self.millis).then_some(u32::from(self.counter));
        let theirs = (millis == remote.millis()).then_some(u32::from(remote.counter()));
        let counter = own.max(theirs).map_or(0, |counter| counter + 1);
        self.step(millis, counter, now_ms)
    }

    fn step(&mut self, millis: u64, counter: u32, now_ms: u64) -> Result<Timestamp, ClockError> {
        let ahead_ms = millis.saturating_sub(now_ms);
        if ahead_ms > DRIFT_MS_MAX {
            return Err(ClockError::Drift { ahead_ms });
        }
        let overflow = ClockError::Overflow { millis };
        let counter = u16::try_from(counter).ok().ok_or(overflow)?;
        let reading = Timestamp::new(millis, counter, self.node).ok_or(overflow)?;
        (self.millis, self.counter) = (millis, counter);
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODE: Node = Node(1);

    fn at(millis: u64, counter: u16) -> Timestamp {
        Timestamp::new(millis, counter, Node(2)).unwrap()
    }

    #[test]
    fn counter_counts_within_a_millisecond_and_restarts_in_the_next() {
        let mut clock = Clock::new(NODE, Timestamp::ZERO);
        let readings: Vec<_> = [10, 10, 9, 11].map(|now| clock.send(now, now).unwrap()).into();
        let parts: Vec<_> = readings.iter().map(|t| (t.millis(), t.counter())).collect();
        assert_eq!(parts, [(10, 0), (10, 1), (10, 2), (11, 0)]);
    }

    #[test]
    fn receive_follows_whichever_side_is_ahead() {
        let check = |own: (u64, u16), remote: (u64, u16), now, expected: (u64, u16)| {
            let mut clock = Clock::new(NODE, at(own.0, own.1));
            let t = clock.receive(at(remote.0, remote.1), now).unwrap();
            assert_eq!((t.millis(), t.counter()), expected);
        };
        check((10, 3), (10, 7), 5, (10, 8));
        check((10, 3), (9, 7), 5, (10, 4));
        check((10, 3), (11, 7), 5, (11, 8));
        check((10, 3), (11, 7), 12, (12, 0));
        check((10, 3), (9, 7), 10, (10, 4));
    }

    #[test]
    fn five_minutes_of_drift_are_allowed_and_no_more() {
        let mut clock = Clock::new(NODE, Timestamp::ZERO);
        let now = 1_000_000;
        clock.receive(at(now + DRIFT_MS_MAX, 0), now).unwrap();
        let before = clock;
        let refused = clock.receive(at(now + DRIFT_MS_MAX + 1, 0), now);
        assert_eq!(refused, Err(ClockError::Drift { ahead_ms: DRIFT_MS_MAX + 1 }));
        assert_eq!(clock, before);
        let wall_went_back = clock.send(now - 1, now - 1);
        assert_eq!(wall_went_back, Err(ClockError::Drift { ahead_ms: DRIFT_MS_MAX + 1 }));
    }

    #[test]
    fn a_full_millisecond_overflows() {
        let mut clock = Clock::new(NODE, at(10, u16::MAX));
        let before = clock;
        assert_eq!(clock.send(10, 10), Err(ClockError::Overflow { millis: 10 }));
        assert_eq!(clock.receive(at(10, 1), 10), Err(ClockError::Overflow { millis: 10 }));
        assert_eq!(clock, before);
        assert_eq!(clock.send(11, 11).unwrap().counter(), 0);
    }

    proptest! {
        #[test]
        fn readings_strictly_increase_under_any_skew(
            steps in prop::collection::vec((0u64..50, prop::option::of((0u64..50, any::<u16>()))), 1..200)
        ) {
            let mut clock = Clock::new(NODE, Timestamp::ZERO);
            let mut last = clock.last();
            for (now, remote) in steps {
                let reading = match remote {
                    Some((millis, counter)) => clock.receive(at(millis, counter), now),
                    None => clock.send(now, now),
                };
                match reading {
                    Ok(reading) => {
                        prop_assert!(reading > last);
                        if let Some((millis, counter)) = remote {
                            prop_assert!((reading.millis(), reading.counter()) > (millis, counter));
                        }
                        last = reading;
                    }
                    Err(ClockError::Overflow { .. }) => {}
                    Err(drift) => prop_assert!(false, "{drift}"),
                }
                prop_assert_eq!(clock.last(), last);
            }
        }
    }
}
