//! The server's counters as plain numbers since its start, for the operator's calls and, at each
//! scrape, for the recorder.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::clock;

/// The bounds of duration buckets in milliseconds: from a cached read to a password hash that
/// waited for its permit.
pub(crate) const DURATION_BOUNDS_MS: [f64; 15] = [
    0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0,
    30_000.0,
];

pub(crate) struct RequestTotals {
    started: Instant,
    requests: AtomicU64,
    failed_requests: AtomicU64,
    connections: AtomicU64,
    stored: AtomicU64,
    known: AtomicU64,
    sent: AtomicU64,
    /// The number of syncs per bucket of their duration: one for each bound, and one for longer
    /// ones.
    syncs: [AtomicU64; DURATION_BOUNDS_MS.len() + 1],
}

/// The totals at one moment.
#[derive(Clone, Debug)]
pub(crate) struct TotalsSnapshot {
    pub(crate) uptime: Duration,
    pub(crate) requests: u64,
    pub(crate) failed_requests: u64,
    pub(crate) connections: u64,
    pub(crate) stored: u64,
    pub(crate) known: u64,
    pub(crate) sent: u64,
    pub(crate) syncs: [u64; DURATION_BOUNDS_MS.len() + 1],
}

impl RequestTotals {
    pub(super) fn new() -> Self {
        Self {
            started: clock::now(),
            requests: AtomicU64::new(0),
            failed_requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            known: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            syncs: Default::default(),
        }
    }

    pub(super) fn answered(&self, route: &str, is_failed: bool, duration: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.failed_requests.fetch_add(is_failed.into(), Ordering::Relaxed);
        if is_sync(route) {
            let duration_ms = duration.as_secs_f64() * 1_000.0;
            let bucket = DURATION_BOUNDS_MS.partition_point(|&bound| bound < duration_ms);
            self.syncs[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn pushed(&self, stored: u64, known: u64) {
        self.stored.fetch_add(stored, Ordering::Relaxed);
        self.known.fetch_add(known, Ordering::Relaxed);
    }

    pub(super) fn pulled(&self, count: u64) {
        self.sent.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> TotalsSnapshot {
        let read = |total: &AtomicU64| total.load(Ordering::Relaxed);
        TotalsSnapshot {
            uptime: clock::now() - self.started,
            requests: read(&self.requests),
            failed_requests: read(&self.failed_requests),
            connections: read(&self.connections),
            stored: read(&self.stored),
            known: read(&self.known),
            sent: read(&self.sent),
            syncs: std::array::from_fn(|bucket| read(&self.syncs[bucket])),
        }
    }
}

/// Whether a request to this route sends or fetches messages, in our API or a gateway's.
fn is_sync(route: &str) -> bool {
    let is_ours = route.starts_with("/v1/sync/") && route != "/v1/sync/events";
    is_ours || route.ends_with("/sync/sync")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_counted_by_how_long_they_took() {
        let totals = RequestTotals::new();
        let took = |route, micros| totals.answered(route, false, Duration::from_micros(micros));
        for (route, micros) in [
            ("/v1/sync/delta", 499),
            ("/v1/sync/delta", 500),
            ("/v1/sync/full", 501),
            ("/actual/sync/sync", 40_000_000),
            ("/v1/sync/events", 1),
            ("/sync/list-user-files", 1),
            ("/v1/devices", 1),
        ] {
            took(route, micros);
        }
        totals.answered("none", true, Duration::ZERO);
        let seen = totals.snapshot();
        assert_eq!((seen.requests, seen.failed_requests), (8, 1));
        let mut expected = [0; 16];
        (expected[0], expected[1], expected[15]) = (2, 1, 1);
        assert_eq!(seen.syncs, expected);
    }
}
