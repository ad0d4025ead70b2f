//! Divides time into windows for comparing two sets of messages
//! (`docs/reference/formats/8-reconcile.md`).
//!
//! A *hybrid time* is a timestamp without its node id: milliseconds and counter as one number, so
//! that hybrid times sort by time, and a bound can separate any two messages with different ones. A
//! *window* is 2³⁰ milliseconds, some 12 days and 10 hours, aligned to 1970.

use std::ops::Range;

use crate::Timestamp;

/// The bits of a hybrid time below its window: 30 of the milliseconds, 16 of the counter.
const WINDOW_SHIFT: u32 = 30 + 16;

/// A window of 2³⁰ milliseconds, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FingerprintWindow(pub u32);

impl FingerprintWindow {
    /// Returns the window that contains a timestamp.
    pub fn for_timestamp(timestamp: Timestamp) -> Self {
        Self::for_hybrid_time(timestamp.hybrid_time())
    }

    /// Returns the window that contains a hybrid time.
    pub fn for_hybrid_time(hybrid_time: u64) -> Self {
        Self((hybrid_time >> WINDOW_SHIFT) as u32)
    }

    /// Returns the hybrid times of the window.
    pub fn time_range(self) -> Range<u64> {
        let start = |window: u32| u64::from(window) << WINDOW_SHIFT;
        start(self.0)..start(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    #[test]
    fn every_timestamp_is_in_its_window_and_in_no_other() {
        for millis in [0, 1, (1 << 30) - 1, 1 << 30, 1_750_000_000_000, Timestamp::MILLIS_MAX] {
            let timestamp = Timestamp::new(millis, u16::MAX, NodeId(u64::MAX)).unwrap();
            let window = FingerprintWindow::for_timestamp(timestamp);
            assert!(window.time_range().contains(&timestamp.hybrid_time()), "{millis}");
            assert_eq!(u64::from(window.0), millis >> 30);
        }
    }
}
