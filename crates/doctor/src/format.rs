//! Formats the figures of a finding, such as estimates and shares, and converts numbers for them.

use std::time::Duration;

use indicatif::HumanCount;

/// Formats an estimate with only its significant digits.
pub(crate) fn format_estimate(value: f64) -> String {
    if value < 1_000.0 {
        return format!("{value:.0}");
    }
    let scale = 10_f64.powf(value.log10().floor() - 1.0);
    HumanCount(round_to_u64((value / scale).round() * scale)).to_string()
}

/// Formats a count with its noun: `1 row`, `1,200 rows`.
pub fn counted(count: u64, singular: &str, plural: &str) -> String {
    let noun = if count == 1 { singular } else { plural };
    format!("{} {noun}", HumanCount(count))
}

/// Formats a share of 1 as a percentage, such as `17 %`.
pub(crate) fn format_percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Converts a count, which is small enough for `f64` to represent it exactly.
#[expect(clippy::cast_precision_loss, reason = "a figure to show or to compare, not an address")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// Converts a duration to whole milliseconds.
pub(crate) fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Rounds a figure to the nearest whole number, and NaN to 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is right for a figure"
)]
pub(crate) fn round_to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// Returns `a / b`, or 0 if `b` is 0.
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { to_f64(a) / to_f64(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_they_deserve() {
        assert_eq!([format_estimate(123.4), format_estimate(123_456.0)], ["123", "120,000"]);
        assert_eq!(format_percent(0.256), "26 %");
    }
}
