//! Runs the callers: tasks that each wait for their transaction before they request the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::task::JoinSet;

use crate::competitor::Competitor;
use crate::plan::{Latency, Plan, Request};

/// The results of all callers.
pub(crate) struct CallerResult {
    pub(crate) transactions: usize,
    pub(crate) elapsed: Duration,
    pub(crate) latency_us: Latency,
}

/// The state that all callers share.
struct CallerContext<R> {
    competitor: Arc<R>,
    /// Requests to run; after the last one, the first is next.
    requests: Vec<Request>,
    /// The number of the next request.
    next: AtomicUsize,
    /// The start of the measured time: commits that return before it do not count.
    start: Instant,
    /// The end of the measured time: commits that return from then on do not count.
    end: Instant,
}

pub(crate) async fn measure<R: Competitor>(
    plan: &Plan,
    competitor: Arc<R>,
    requests: Vec<Request>,
) -> anyhow::Result<CallerResult> {
    let start = now() + Duration::from_secs_f64(plan.warmup_seconds);
    let elapsed = Duration::from_secs_f64(plan.seconds);
    let (next, end) = (AtomicUsize::new(0), start + elapsed);
    let shared = Arc::new(CallerContext { competitor, requests, next, start, end });
    let mut callers = JoinSet::new();
    for _ in 0..plan.concurrency {
        callers.spawn(call(Arc::clone(&shared)));
    }
    let mut waits = Vec::new();
    while let Some(caller) = callers.join_next().await {
        waits.extend(caller.context("a caller")??);
    }
    ensure!(!waits.is_empty(), "no transaction ended in {elapsed:?}");
    waits.sort_unstable();
    Ok(CallerResult { transactions: waits.len(), elapsed, latency_us: percentiles(&waits) })
}

/// Runs one caller and returns its waits within the measured time.
async fn call<R: Competitor>(shared: Arc<CallerContext<R>>) -> anyhow::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    let mut asked = now();
    while asked < shared.end {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        shared.competitor.run(shared.requests[number % shared.requests.len()]).await?;
        let answered = now();
        if (shared.start..shared.end).contains(&answered) {
            waits.push(answered - asked);
        }
        asked = answered;
    }
    Ok(waits)
}

/// Returns the percentiles of at least one wait; the waits are sorted.
fn percentiles(waits: &[Duration]) -> Latency {
    let us = |wait: Duration| wait.as_secs_f64() * 1e6;
    // The percentile is the smallest wait that this percentage of all waits did not exceed.
    let at = |percent: usize| us(waits[(waits.len() * percent).div_ceil(100) - 1]);
    Latency { p50: at(50), p95: at(95), p99: at(99), max: us(waits[waits.len() - 1]) }
}

#[expect(clippy::disallowed_methods, reason = "the driver's one stopwatch")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_waits_that_happened() {
        let check = |waits: std::ops::RangeInclusive<u64>, expected: [u64; 4]| {
            let waits: Vec<Duration> = waits.map(Duration::from_secs).collect();
            let Latency { p50, p95, p99, max } = percentiles(&waits);
            let seconds = |us: f64| Duration::from_secs_f64(us / 1e6);
            assert_eq!([p50, p95, p99, max].map(seconds), expected.map(Duration::from_secs));
        };
        check(1..=200, [100, 190, 198, 200]);
        check(7..=7, [7, 7, 7, 7]);
    }
}
