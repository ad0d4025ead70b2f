//! Maps values to positions: a linear or a logarithmic axis, and its marks.

/// An axis that maps values to percentages of its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartAxis {
    low: f64,
    high: f64,
    is_log: bool,
}

impl ChartAxis {
    /// Returns a linear axis from 0 to `high`.
    pub(super) fn linear(high: f64) -> Self {
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, is_log: false }
    }

    /// Returns a logarithmic axis between two values greater than 0.
    pub(super) fn log(low: f64, high: f64) -> Self {
        assert!(low > 0.0 && high >= low, "no logarithm from {low} to {high}");
        Self { low, high, is_log: true }
    }

    /// Widens the axis so that its ends are on marks.
    pub(super) fn widened(self, marks_max: usize) -> Self {
        if self.is_log {
            let low = round_values(self.low / 10.0, self.low).last().copied();
            let high = round_values(self.high, self.high * 10.0).first().copied();
            Self { low: low.unwrap_or(self.low), high: high.unwrap_or(self.high), ..self }
        } else {
            let step = step(self.high, marks_max);
            Self { high: (self.high / step - 1e-9).ceil() * step, ..self }
        }
    }

    /// Returns a position in percent of the length; values outside of the axis are at its ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if !self.is_log {
            value / self.high
        } else if self.high > self.low {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            0.5
        };
        100.0 * part
    }

    /// Returns round values on the axis: at most `marks_max`, at least one.
    pub(super) fn marks(&self, marks_max: usize) -> Vec<f64> {
        if self.is_log {
            let marks = round_values(self.low, self.high);
            if marks.len() <= marks_max { marks } else { decades(self.low, self.high) }
        } else {
            let step = step(self.high, marks_max);
            let marks = std::iter::successors(Some(0.0), |index| Some(index + 1.0));
            let marks = marks.map(|index: f64| index * step);
            marks.take_while(|mark| *mark <= self.high * (1.0 + 1e-9)).collect()
        }
    }
}

/// Returns the distance of marks from 0 to `high`.
fn step(high: f64, marks_max: usize) -> f64 {
    let decade = 10f64.powf(high.log10().floor() - 2.0);
    let steps = (0..4).flat_map(|power| [1.0, 2.0, 2.5, 5.0].map(|step| step * 10f64.powi(power)));
    let mut steps = steps.map(|step| step * decade);
    #[expect(clippy::cast_precision_loss, reason = "a handful of marks")]
    let intervals_max = marks_max.saturating_sub(1).max(1) as f64;
    steps.find(|step| high / step <= intervals_max).unwrap_or(high)
}

/// Returns the round values of every decade: 1, 2 and 5.
fn round_values(low: f64, high: f64) -> Vec<f64> {
    within(low, high, &[1.0, 2.0, 5.0])
}

fn decades(low: f64, high: f64) -> Vec<f64> {
    within(low, high, &[1.0])
}

fn within(low: f64, high: f64, digits: &[f64]) -> Vec<f64> {
    let mut decade = 10f64.powf(low.log10().floor());
    let mut values = Vec::new();
    while decade <= high {
        values.extend(digits.iter().map(|digit| digit * decade));
        decade *= 10.0;
    }
    let tolerance = 1.0 + 1e-9;
    values.retain(|value| *value * tolerance >= low && *value <= high * tolerance);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_marks(axis: ChartAxis, expected: &[f64]) {
        let marks = axis.marks(6);
        assert_eq!(marks.len(), expected.len(), "{marks:?}");
        let is_near = |(mark, expected): (&f64, &f64)| (mark - expected).abs() <= 1e-6 * expected;
        assert!(marks.iter().zip(expected).all(is_near), "{marks:?}");
    }

    #[test]
    fn marks_are_round() {
        check_marks(ChartAxis::linear(1.07), &[0.0, 0.25, 0.5, 0.75, 1.0]);
        check_marks(ChartAxis::linear(41.0), &[0.0, 10.0, 20.0, 30.0, 40.0]);
        check_marks(
            ChartAxis::linear(121_000.0).widened(6),
            &[0.0, 25_000.0, 50_000.0, 75_000.0, 100_000.0, 125_000.0],
        );
        check_marks(ChartAxis::log(30.0, 450.0).widened(6), &[20.0, 50.0, 100.0, 200.0, 500.0]);
        check_marks(ChartAxis::log(3.0, 45_000.0), &[10.0, 100.0, 1_000.0, 10_000.0]);
    }

    #[test]
    fn the_ends_are_the_ends() {
        for axis in [ChartAxis::linear(8.0), ChartAxis::log(2.0, 8.0)] {
            assert!((axis.at(8.0) - 100.0).abs() < 1e-9 && (axis.at(9.0) - 100.0).abs() < 1e-9);
            assert!((axis.at(4.0) - 50.0).abs() < 1e-9);
        }
        assert!(ChartAxis::linear(0.0).at(0.0).abs() < 1e-9);
        assert!((ChartAxis::log(7.0, 7.0).at(7.0) - 50.0).abs() < 1e-9);
    }
}
