//! What callers saw: requests, waits, failures.

use std::time::Duration;

use crate::measure::{LatencyRecorder, RoundSample};
use crate::message_generator::MessageSchedule;

const PUSH_METRICS: [&str; 6] = [
    "pushes/s",
    "push average, ms",
    "push P50, ms",
    "push P95, ms",
    "push P99, ms",
    "push max, ms",
];
const PULL_METRICS: [&str; 6] =
    ["pulls/s", "pull average, ms", "pull P50, ms", "pull P95, ms", "pull P99, ms", "pull max, ms"];

/// What a request moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferCounts {
    pub(super) messages: u64,
    /// Of the answer.
    pub(super) bytes: u64,
}

/// What one endpoint did.
#[derive(Debug)]
struct EndpointStats {
    latencies: LatencyRecorder,
    messages: u64,
    bytes: u64,
}

/// What all callers saw.
#[derive(Debug)]
pub(super) struct LoadStats {
    push: EndpointStats,
    pull: EndpointStats,
    pub(super) failures: u64,
    pub(super) first_failure: Option<String>,
    /// Of an open loop: requests for which the time ended before their connection was free.
    pub(super) not_begun: u64,
}

impl EndpointStats {
    fn new() -> Self {
        Self { latencies: LatencyRecorder::new(), messages: 0, bytes: 0 }
    }

    /// Where two endpoints share a row.
    fn metrics(
        &self,
        names: [&'static str; 6],
        duration: Duration,
    ) -> impl Iterator<Item = (&'static str, f64)> {
        let values = self.latencies.latency_and_mean().map(|latency| {
            let waits = [latency.mean_us?, latency.p50_us, latency.p95_us, latency.p99_us];
            let [mean, p50, p95, p99] = waits.map(|us| us / 1_000.0);
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let rate = self.latencies.count() as f64 / duration.as_secs_f64();
            Some([rate, mean, p50, p95, p99, latency.max_us / 1_000.0])
        });
        names.into_iter().zip(values.flatten().into_iter().flatten())
    }

    fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

impl LoadStats {
    pub(super) fn new() -> Self {
        let (push, pull) = (EndpointStats::new(), EndpointStats::new());
        Self { push, pull, failures: 0, first_failure: None, not_begun: 0 }
    }

    pub(super) fn record(
        &mut self,
        is_push: bool,
        wait: Duration,
        moved: anyhow::Result<TransferCounts>,
    ) {
        let endpoint = if is_push { &mut self.push } else { &mut self.pull };
        match moved {
            Ok(TransferCounts { messages, bytes }) => {
                endpoint.latencies.record(wait);
                endpoint.messages += messages;
                endpoint.bytes += bytes;
            }
            Err(error) => {
                self.failures += 1;
                self.first_failure.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.push.merge(&other.push);
        self.pull.merge(&other.pull);
        self.failures += other.failures;
        self.not_begun += other.not_begun;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// Requests that succeeded.
    pub(super) fn requests(&self) -> u64 {
        self.push.latencies.count() + self.pull.latencies.count()
    }

    /// In requests, of which there may have been none in time. It fails if each was answered with an
    /// error.
    pub(super) fn sample(
        &self,
        load: ServiceLoad,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        if self.requests() == 0 {
            let Some(why) = &self.first_failure else { return Ok(RoundSample::new(0, duration)) };
            anyhow::bail!("no request succeeded: {why}");
        }
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let count = |count: u64| count as f64;
        let mut all = self.push.latencies.clone();
        all.merge(&self.pull.latencies);
        let mut sample = RoundSample::new(self.requests(), duration);
        sample.latency = all.latency_and_mean();
        let messages = count(self.push.messages + self.pull.messages);
        sample.metrics.push(("messages/s", messages / duration.as_secs_f64()));
        let bytes = count(self.push.bytes + self.pull.bytes);
        sample.metrics.push(("kB an answer", bytes / count(self.requests()) / 1e3));
        sample.metrics.push(("requests", count(self.requests())));
        sample.metrics.push(("failures", count(self.failures)));
        if load.rate.is_some() {
            sample.metrics.push(("not begun", count(self.not_begun)));
        }
        if load.operation == LoadOperation::Cross {
            sample.metrics.extend(self.push.metrics(PUSH_METRICS, duration));
            sample.metrics.extend(self.pull.metrics(PULL_METRICS, duration));
        }
        Ok(sample)
    }
}

/// What devices do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadOperation {
    /// Push pages of new messages.
    Upload,
    /// Pull from random cursors over the seeded messages.
    Download,
    /// Push, then pull what the others pushed, and so on.
    Cross,
    /// Push, and get in the same answer what the others pushed: nothing, where there are none.
    Sync,
    /// Pull everything.
    Whole,
}

/// How they do it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceLoad {
    pub(crate) operation: LoadOperation,
    /// Of a push.
    pub(crate) messages: usize,
    /// Of a pull.
    pub(crate) limit: usize,
    /// Requests a second of an open loop; `None` for a closed one.
    pub(crate) rate: Option<f64>,
    /// Connections on which the devices take turns; `None` for one each, within reason.
    pub(crate) connections: Option<usize>,
    /// Messages that each user has before.
    pub(crate) seeded: u64,
    /// When those were made, and others are.
    pub(crate) pace: MessageSchedule,
}
