//! Counts the callers' requests, waits and failures.

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

/// The messages and bytes that a request moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferCounts {
    pub(super) messages: u64,
    /// The bytes of the response.
    pub(super) bytes: u64,
}

/// The results of one endpoint.
#[derive(Debug)]
struct EndpointStats {
    latencies: LatencyRecorder,
    messages: u64,
    bytes: u64,
}

/// The results of all callers.
#[derive(Debug)]
pub(super) struct LoadStats {
    push: EndpointStats,
    pull: EndpointStats,
    pub(super) failures: u64,
    pub(super) first_failure: Option<String>,
    /// The requests of an open loop for which the time ended before their connection was free.
    pub(super) not_begun: u64,
}

impl EndpointStats {
    fn new() -> Self {
        Self { latencies: LatencyRecorder::new(), messages: 0, bytes: 0 }
    }

    /// Returns the metrics of one endpoint, for rows in which two endpoints share a row.
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

    /// Returns the number of requests that succeeded.
    pub(super) fn requests(&self) -> u64 {
        self.push.latencies.count() + self.pull.latencies.count()
    }

    /// Returns the sample, counted in requests; possibly none ended in time. Fails if every
    /// request failed.
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

/// The work of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadOperation {
    /// Pushes pages of new messages.
    Upload,
    /// Pulls from random cursors in the seeded messages.
    Download,
    /// Pushes, then pulls the messages that the others pushed, and so on.
    Cross,
    /// Pushes, and gets the messages of other devices in the same response: none, if there are no
    /// others.
    Sync,
    /// Pulls all messages.
    Whole,
}

/// The load that the devices put on the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceLoad {
    pub(crate) operation: LoadOperation,
    /// Messages of a push.
    pub(crate) messages: usize,
    /// Messages of a pull at most.
    pub(crate) limit: usize,
    /// Requests per second of an open loop; `None` for a closed one.
    pub(crate) rate: Option<f64>,
    /// Connections on which the devices take turns; `None` for one per device, up to a limit.
    pub(crate) connections: Option<usize>,
    /// Messages that each user already has.
    pub(crate) seeded: u64,
    /// The times of those messages and of new ones.
    pub(crate) pace: MessageSchedule,
}
