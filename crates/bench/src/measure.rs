//! Samples and what may be said of them: medians, and the spread beside each.

use std::time::{Duration, Instant};

use serde::Serialize;

/// How long `work` takes.
#[expect(clippy::disallowed_methods, reason = "the benchmark's one stopwatch")]
pub(crate) fn time<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Duration)> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

/// Median and extremes of some samples.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All, in the order in which they were taken.
    pub samples: Vec<f64>,
}

impl Spread {
    /// Of at least one sample.
    pub(crate) fn of(samples: Vec<f64>) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, min: sorted[0], max: sorted[sorted.len() - 1], samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert!((Spread::of(vec![3.0, 1.0, 2.0]).median - 2.0).abs() < f64::EPSILON);
        let even = Spread::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert!((even.median - 2.5).abs() < f64::EPSILON);
        assert_eq!((even.min.to_bits(), even.max.to_bits()), (1.0f64.to_bits(), 4.0f64.to_bits()));
    }
}
