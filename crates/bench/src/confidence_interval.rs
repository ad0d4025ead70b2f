//! Computes confidence intervals of a median, and of a difference, from a few measurements.
//!
//! # Invariants
//! - The computation uses no random numbers: a bootstrap draws samples of the samples again and
//!   again, and the medians of infinitely many draws are known exactly (Efron, *The Jackknife, the
//!   Bootstrap and Other Resampling Plans*, 1982, §10).
//! - With few samples the bootstrap promises too much, so an interval is never narrower than that of
//!   the sign test, which holds for every distribution.
//! - The comparisons of one table share one chance of error (Bonferroni): of all tables in which
//!   nothing differs, 95 % show no difference.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// The probability with which an interval contains the true median.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The bounds of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfidenceInterval {
    /// The lower bound of the interval; null if it is not a number.
    #[serde(deserialize_with = "number")]
    #[schema(value_type = Option<f64>)]
    pub low: f64,
    /// The upper bound of the interval; null if it is not a number.
    #[serde(deserialize_with = "number")]
    #[schema(value_type = Option<f64>)]
    pub high: f64,
}

impl ConfidenceInterval {
    /// Returns the interval of the median of `sorted` samples, at least one; the interval from the
    /// smallest to the largest sample if they are too few for `confidence`.
    pub(crate) fn for_median(sorted: &[f64], confidence: f64) -> Self {
        let count = sorted.len();
        let tail = (1.0 - confidence) / 2.0;
        let extreme = Self { low: sorted[0], high: sorted[count - 1] };
        if !suffices(count, confidence) {
            return extreme;
        }
        // With an even number of samples, these are the lower and the upper of the two in the
        // middle.
        let (lower, upper) = (count.div_ceil(2), count / 2 + 1);
        let rank = |wanted: f64, middle: usize| {
            let reaches = |rank: &usize| bootstrapped(count, *rank, middle) >= wanted;
            (1..=count).find(reaches).unwrap_or(count)
        };
        let signs = sign_test_rank(count, tail);
        let low = rank(tail, lower).min(signs);
        let high = rank(1.0 - tail, upper).max(count + 1 - signs);
        Self { low: sorted[low - 1], high: sorted[high - 1] }
    }

    /// Returns half of the interval's width, as a share of `median`.
    pub(crate) fn precision(self, median: f64) -> f64 {
        (self.high - self.low) / 2.0 / median.abs()
    }
}

/// Returns whether `count` samples can contain the median with this confidence at all: the chance
/// that all samples are on one side of it is 2^(1 - count).
fn suffices(count: usize, confidence: f64) -> bool {
    count > 0 && chance(count, 0.5, 0) * 2.0 <= 1.0 - confidence
}

/// Returns the chance that the median of a bootstrap's sample, its number `middle`, is at most
/// number `rank` of the samples: that at least `middle` of `count` draws are among the first
/// `rank`.
fn bootstrapped(count: usize, rank: usize, middle: usize) -> f64 {
    if rank == count {
        return 1.0;
    }
    let share = to_f64(rank) / to_f64(count);
    (middle..=count).map(|successes| chance(count, share, successes)).sum()
}

/// Returns the possible medians of a bootstrap's sample, each with its chance; the lower and the
/// upper of the two in the middle count equally.
fn medians(samples: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let at_most = |rank: usize| {
        if rank == 0 {
            return 0.0;
        }
        let (lower, upper) = (count.div_ceil(2), count / 2 + 1);
        f64::midpoint(bootstrapped(count, rank, lower), bootstrapped(count, rank, upper))
    };
    let chances: Vec<f64> = (0..=count).map(at_most).collect();
    sorted.into_iter().zip(chances.windows(2)).map(|(value, of)| (value, of[1] - of[0])).collect()
}

/// Returns the first value at which the sum of the chances up to and including it exceeds `tail`.
fn quantile<'a>(mut weighted: impl Iterator<Item = &'a (f64, f64)>, tail: f64) -> f64 {
    let mut sum = 0.0;
    let found = weighted.find(|(_, chance)| {
        sum += chance;
        sum > tail
    });
    found.map_or(f64::NAN, |(value, _)| *value)
}

/// Returns the largest rank below which the median is with a chance of at most `tail`.
fn sign_test_rank(count: usize, tail: f64) -> usize {
    let mut below = 0.0;
    for rank in 1..=count {
        below += chance(count, 0.5, rank - 1);
        if below > tail {
            return (rank - 1).max(1);
        }
    }
    count
}

/// Returns the chance of exactly `successes` in `count` trials, each with probability `share`,
/// which is neither 0 nor 1.
fn chance(count: usize, share: f64, successes: usize) -> f64 {
    let ways: f64 =
        (0..successes).map(|index| (to_f64(count - index) / to_f64(successes - index)).ln()).sum();
    let failures = count - successes;
    (ways + to_f64(successes) * share.ln() + to_f64(failures) * (1.0 - share).ln()).exp()
}

#[expect(clippy::cast_precision_loss, reason = "numbers of samples")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

/// The difference between a case and its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MedianDifference {
    /// The interval of the ratio, wide enough for all comparisons of the table together.
    pub interval: ConfidenceInterval,
    /// The verdict that follows from the interval.
    pub verdict: DifferenceVerdict,
    /// The difference as text for people, such as `faster by 8–11 %`.
    pub text: String,
}

/// The verdict on whether two measurements differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// More rounds are needed for a verdict.
    TooFewRounds,
    /// The interval contains 1.
    NoDifference,
    /// The whole interval is above 1.
    Faster,
    /// The whole interval is below 1.
    Slower,
}

impl MedianDifference {
    /// Returns the difference for the ratios of all rounds, one of `comparisons` in its table.
    pub(crate) fn from_ratios(ratios: &[f64], comparisons: usize) -> Self {
        if ratios.is_empty() {
            return Self::from_interval(
                ConfidenceInterval { low: f64::NAN, high: f64::NAN },
                false,
            );
        }
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        let confidence = 1.0 - (1.0 - CONFIDENCE) / to_f64(comparisons.max(1));
        let interval = ConfidenceInterval::for_median(&sorted, confidence);
        let is_enough = suffices(sorted.len(), confidence);
        Self::from_interval(interval, is_enough)
    }

    /// Returns the difference between the medians of two separate runs, one of `comparisons`: `b`
    /// compared with `a`.
    pub(crate) fn between(a: &[f64], b: &[f64], comparisons: usize) -> Self {
        let confidence = 1.0 - (1.0 - CONFIDENCE) / to_f64(comparisons.max(1));
        let is_enough = suffices(a.len(), confidence) && suffices(b.len(), confidence);
        let (a, b) = (medians(a), medians(b));
        let mut ratios: Vec<(f64, f64)> = Vec::with_capacity(a.len() * b.len());
        for (divisor, of_a) in &a {
            ratios.extend(b.iter().map(|(median, of_b)| (median / divisor, of_a * of_b)));
        }
        ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
        let tail = (1.0 - confidence) / 2.0;
        let low = quantile(ratios.iter(), tail);
        let high = quantile(ratios.iter().rev(), tail);
        Self::from_interval(ConfidenceInterval { low, high }, is_enough)
    }

    fn from_interval(interval: ConfidenceInterval, is_enough: bool) -> Self {
        let ConfidenceInterval { low, high } = interval;
        let verdict = match () {
            () if !is_enough || !low.is_finite() || !high.is_finite() => {
                DifferenceVerdict::TooFewRounds
            }
            () if low > 1.0 => DifferenceVerdict::Faster,
            () if high < 1.0 => DifferenceVerdict::Slower,
            () => DifferenceVerdict::NoDifference,
        };
        let text = match verdict {
            DifferenceVerdict::TooFewRounds => "too few rounds for a verdict".to_owned(),
            DifferenceVerdict::NoDifference => "no difference found".to_owned(),
            DifferenceVerdict::Faster if low >= 2.0 => {
                format!("{} times as fast", range(low, high, 10.0))
            }
            DifferenceVerdict::Faster => {
                format!("faster by {} %", range((low - 1.0) * 100.0, (high - 1.0) * 100.0, 2.0))
            }
            DifferenceVerdict::Slower if high <= 0.1 => {
                format!("takes {} times as long", range(1.0 / high, 1.0 / low, 10.0))
            }
            DifferenceVerdict::Slower => {
                format!("slower by {} %", range((1.0 - high) * 100.0, (1.0 - low) * 100.0, 2.0))
            }
        };
        Self { interval, verdict, text }
    }
}

/// Formats two numbers in as few digits as distinguish them from 0; from `whole` on without
/// decimals.
fn range(low: f64, high: f64, whole: f64) -> String {
    let decimals = match low {
        low if low < 0.095 => 2,
        low if low < whole => 1,
        _ => 0,
    };
    let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
    if low == high { low } else { format!("{low}–{high}") }
}

/// Reads a number, which JSON writes as `null` if it is not finite.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(count: u32, confidence: f64) -> (f64, f64) {
        let sorted: Vec<f64> = (1..=count).map(f64::from).collect();
        let ConfidenceInterval { low, high } = ConfidenceInterval::for_median(&sorted, confidence);
        (low, high)
    }

    #[test]
    fn the_bootstrap_is_that_of_infinitely_many_draws() {
        // The median of three draws from three samples is the smallest sample in 7 of 27 cases.
        assert!((bootstrapped(3, 1, 2) - 7.0 / 27.0).abs() < 1e-12);
        assert!((bootstrapped(3, 2, 2) - 20.0 / 27.0).abs() < 1e-12);
        assert!((bootstrapped(3, 3, 2) - 1.0).abs() < 1e-12);
        // Many trials cause neither overflow nor underflow.
        let all: f64 = (0..=2_000).map(|successes| chance(2_000, 0.5, successes)).sum();
        assert!((all - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_interval_is_as_wide_as_the_sign_test_says() {
        // The ranks are from the tables of the sign test; the bootstrap's interval is wider by one
        // at most.
        for (count, expected) in [(6, (1.0, 6.0)), (9, (2.0, 8.0)), (20, (6.0, 15.0))] {
            assert_eq!(ranks(count, 0.95), expected, "{count}");
        }
        assert_eq!(ranks(5, 0.95), (1.0, 5.0), "too few: the extremes");
        assert_eq!(ranks(1, 0.95), (1.0, 1.0));
        assert!(!suffices(5, 0.95) && suffices(6, 0.95));
        assert!(!suffices(9, 1.0 - 0.05 / 21.0) && suffices(10, 1.0 - 0.05 / 21.0));
    }

    #[test]
    fn it_holds_the_median_as_often_as_it_says() {
        use rand::rngs::SmallRng;
        use rand::{RngExt, SeedableRng};
        let mut random = SmallRng::seed_from_u64(1);
        let rounds = 2_000;
        for count in [6, 11, 24] {
            let mut held = 0;
            for _ in 0..rounds {
                // The samples are skewed, like times are: the median is ln 2.
                let mut samples: Vec<f64> =
                    (0..count).map(|_| -random.random::<f64>().max(1e-12).ln()).collect();
                samples.sort_by(f64::total_cmp);
                let ConfidenceInterval { low, high } =
                    ConfidenceInterval::for_median(&samples, CONFIDENCE);
                held += usize::from((low..=high).contains(&std::f64::consts::LN_2));
            }
            assert!(held * 100 > rounds * 94, "{held} of {rounds} with {count} samples");
        }
    }

    #[test]
    fn a_difference_is_told_in_words() {
        let check = |low, high, expected: &str, verdict| {
            let difference =
                MedianDifference::from_interval(ConfidenceInterval { low, high }, true);
            assert_eq!((difference.text.as_str(), difference.verdict), (expected, verdict));
        };
        check(1.08, 1.11, "faster by 8–11 %", DifferenceVerdict::Faster);
        check(1.12, 1.27, "faster by 12–27 %", DifferenceVerdict::Faster);
        check(1.3, 1.301, "faster by 30 %", DifferenceVerdict::Faster);
        check(1.001, 1.004, "faster by 0.1–0.4 %", DifferenceVerdict::Faster);
        check(2.1, 2.34, "2.1–2.3 times as fast", DifferenceVerdict::Faster);
        check(0.4, 0.5, "slower by 50–60 %", DifferenceVerdict::Slower);
        check(0.04, 0.05, "takes 20–25 times as long", DifferenceVerdict::Slower);
        check(0.99, 1.01, "no difference found", DifferenceVerdict::NoDifference);
        check(1.0, 1.2, "no difference found", DifferenceVerdict::NoDifference);
        check(f64::NAN, f64::NAN, "too few rounds for a verdict", DifferenceVerdict::TooFewRounds);
    }

    #[test]
    fn two_runs_are_compared_by_their_medians() {
        let run = |median: f64, spread: f64| -> Vec<f64> {
            (-10..=10).map(|step| median + spread * f64::from(step)).collect()
        };
        let text = |a: &[f64], b: &[f64]| MedianDifference::between(a, b, 1).text;
        assert_eq!(text(&run(100.0, 1.0), &run(101.0, 1.0)), "no difference found");
        assert_eq!(text(&run(100.0, 0.1), &run(80.0, 0.1)), "slower by 19–21 %");
        assert_eq!(text(&[100.0; 5], &run(80.0, 0.1)), "too few rounds for a verdict");
        assert_eq!(text(&[], &[1.0; 9]), "too few rounds for a verdict");
        // The interval is as wide as a bootstrap of 100,000 draws finds it, of 6 and 7 samples.
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        let chances: f64 = medians(&a).iter().chain(&medians(&b)).map(|(_, chance)| chance).sum();
        assert!((chances - 2.0).abs() < 1e-12);
        let ConfidenceInterval { low, high } = MedianDifference::between(&a, &b, 1).interval;
        assert!((3.0..=5.0).contains(&low) && (20.0..=30.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn more_comparisons_need_more_rounds() {
        let ratios = [1.2, 1.21, 1.22, 1.23, 1.24, 1.25];
        assert_eq!(MedianDifference::from_ratios(&ratios, 1).verdict, DifferenceVerdict::Faster);
        assert_eq!(
            MedianDifference::from_ratios(&ratios, 2).verdict,
            DifferenceVerdict::TooFewRounds
        );
        assert_eq!(MedianDifference::from_ratios(&[], 1).verdict, DifferenceVerdict::TooFewRounds);
    }
}
