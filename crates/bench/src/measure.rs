//! Defines samples and their statistics: medians, each with its spread.

use std::time::Duration;

use engine::clock::now;
use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::confidence_interval::{CONFIDENCE, ConfidenceInterval, number};

/// Runs `work` and returns its value and duration.
pub(crate) fn time<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Duration)> {
    let start = now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

/// Returns durations for tests, from `first` on, each twice as long as the last, until a busy
/// machine has done enough.
#[cfg(test)]
pub(crate) fn longer_each_time(first: Duration) -> impl Iterator<Item = Duration> {
    const LONGEST: Duration = Duration::from_secs(30);
    std::iter::successors(Some(first), |last| Some(*last * 2)).take_while(|next| *next <= LONGEST)
}

/// The median, its confidence interval and the extremes of samples.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Distribution {
    /// The median of the samples; null if it is not a number, such as a rate without operations.
    #[serde(deserialize_with = "number")]
    #[schema(value_type = Option<f64>)]
    pub median: f64,
    /// The 95 % confidence interval of the median; the extremes, if the samples are too few.
    pub interval: ConfidenceInterval,
    /// The smallest sample; null if it is not a number.
    #[serde(deserialize_with = "number")]
    #[schema(value_type = Option<f64>)]
    pub min: f64,
    /// The largest sample; null if it is not a number.
    #[serde(deserialize_with = "number")]
    #[schema(value_type = Option<f64>)]
    pub max: f64,
    /// All samples, in the order of measurement; a sample is null if it is not a number.
    #[serde(deserialize_with = "numbers")]
    #[schema(value_type = Vec<Option<f64>>)]
    pub samples: Vec<f64>,
}

fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

impl Distribution {
    /// Returns the distribution of at least one sample.
    pub(crate) fn from_samples(samples: Vec<f64>) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        let interval = ConfidenceInterval::for_median(&sorted, CONFIDENCE);
        Self { median, interval, min: sorted[0], max: sorted[sorted.len() - 1], samples }
    }
}

/// The metric for the processor time, user and system, of each transaction.
pub(crate) const CPU_US: &str = "CPU µs each";

/// The metric for the time of each operation, where that is clearer than the rate.
pub(crate) const MS_EACH: &str = "ms each";

/// The work of one candidate in one round.
#[derive(Clone, Debug)]
pub(crate) struct RoundSample {
    /// The number of successes: transactions, or another unit of the table.
    pub(crate) transactions: u64,
    /// The time from the first to the last of them.
    pub(crate) elapsed: Duration,
    /// The waits of callers, if they were measured.
    pub(crate) latency: Option<LatencyStats>,
    /// Further columns: a name with the unit, and the value.
    pub(crate) metrics: Vec<(&'static str, f64)>,
}

impl RoundSample {
    /// Returns a sample without latency and metrics.
    pub(crate) fn new(transactions: u64, elapsed: Duration) -> Self {
        Self { transactions, elapsed, latency: None, metrics: Vec::new() }
    }

    /// Returns a sample with the time of each transaction as a metric, where that is clearer than
    /// the rate.
    pub(crate) fn each(transactions: u64, elapsed: Duration) -> Self {
        let sample = Self::new(transactions, elapsed);
        let metrics = vec![(MS_EACH, 1e3 / sample.rate())];
        Self { metrics, ..sample }
    }

    /// Returns the processor time of each transaction in microseconds, if it was measured.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        self.metrics.iter().find(|(name, _)| *name == CPU_US).map(|(_, value)| *value)
    }

    /// Returns the transactions per second.
    pub(crate) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let transactions = self.transactions as f64;
        transactions / self.elapsed.as_secs_f64()
    }
}

/// Statistics of the time that callers waited, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "in JSON only a field's name can say its unit")]
pub struct LatencyStats {
    /// The average wait, in microseconds; null if the benchmark does not report it.
    pub mean_us: Option<f64>,
    /// The median wait, in microseconds: 50 % of the waits were shorter.
    pub p50_us: f64,
    /// The 95th percentile, in microseconds: 95 % of the waits were shorter.
    pub p95_us: f64,
    /// The 99th percentile, in microseconds: 99 % of the waits were shorter.
    pub p99_us: f64,
    /// The longest wait, in microseconds.
    pub max_us: f64,
}

/// Records waits in a histogram.
#[derive(Clone, Debug)]
pub(crate) struct LatencyRecorder(Histogram<u64>);

impl LatencyRecorder {
    pub(crate) fn new() -> Self {
        Self(Histogram::new(3).expect("three digits are allowed"))
    }

    pub(crate) fn record(&mut self, wait: Duration) {
        let ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.0.record(ns).expect("it resizes itself");
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("a histogram of the same shape");
    }

    /// Returns the number of waits.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the statistics with the average, or `None` if there are no waits.
    pub(crate) fn latency_and_mean(&self) -> Option<LatencyStats> {
        let mean_us = Some(self.0.mean() / 1_000.0);
        self.latency().map(|latency| LatencyStats { mean_us, ..latency })
    }

    /// Returns the statistics without the average, or `None` if there are no waits.
    pub(crate) fn latency(&self) -> Option<LatencyStats> {
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of minutes at most")]
        let us = |ns: u64| ns as f64 / 1_000.0;
        let at = |quantile| us(self.0.value_at_quantile(quantile));
        (!self.0.is_empty()).then(|| LatencyStats {
            mean_us: None,
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: us(self.0.max()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert!(
            (Distribution::from_samples(vec![3.0, 1.0, 2.0]).median - 2.0).abs() < f64::EPSILON
        );
        let even = Distribution::from_samples(vec![4.0, 1.0, 2.0, 3.0]);
        assert!((even.median - 2.5).abs() < f64::EPSILON);
        assert_eq!((even.min.to_bits(), even.max.to_bits()), (1.0f64.to_bits(), 4.0f64.to_bits()));
    }

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        assert!(LatencyRecorder::new().latency().is_none());
        let mut latencies = LatencyRecorder::new();
        for us in 1..=100 {
            latencies.record(Duration::from_micros(us));
        }
        let mut all = LatencyRecorder::new();
        all.merge(&latencies);
        let latency = all.latency().unwrap();
        assert!((latency.p50_us - 50.0).abs() < 0.5, "{latency:?}");
        assert!((latency.p99_us - 99.0).abs() < 0.5, "{latency:?}");
        assert!((latency.max_us - 100.0).abs() < 0.5, "{latency:?}");
    }
}
