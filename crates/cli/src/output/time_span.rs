//! Parses and formats spans of time for people.

use std::str::FromStr;
use std::time::Duration;

use indicatif::HumanDuration;

/// The letters of units, and their milliseconds.
const UNITS: [(char, u64); 5] = [
    ('w', 7 * 24 * 3_600_000),
    ('d', 24 * 3_600_000),
    ('h', 3_600_000),
    ('m', 60_000),
    ('s', 1_000),
];

/// A span from the command line, such as `90d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) ms: u64,
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("{text:?} is not a whole number with a unit (s, m, h, d or w), such as 90d");
        let letter = text.chars().next_back().ok_or_else(expected)?;
        let unit = UNITS.iter().find(|(known, _)| *known == letter).ok_or_else(expected)?;
        let digits = &text[..text.len() - 1];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count = is_number.then(|| digits.parse::<u64>().ok()).flatten();
        let ms = count.and_then(|count| count.checked_mul(unit.1)).ok_or_else(expected)?;
        Ok(Self { ms })
    }
}

/// Returns how long ago a time was: `2 minutes ago`, or `never` for 0. Clocks may differ: a time in
/// the future is `just now`.
pub(crate) fn ago(then_ms: u64, now_ms: u64) -> String {
    if then_ms == 0 {
        return "never".to_owned();
    }
    let span = Duration::from_millis(now_ms.saturating_sub(then_ms));
    match span.as_secs() {
        0 => "just now".to_owned(),
        _ => format!("{} ago", HumanDuration(span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_one_number_and_one_unit() {
        for (text, ms) in [
            ("0s", 0),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("90d", 90 * 86_400_000),
            ("3w", 21 * 86_400_000),
        ] {
            assert_eq!(text.parse(), Ok(TimeSpan { ms }), "{text}");
        }
        let wrong = ["", "d", "90", "90 d", "-1d", "+1d", "1.5h", "9ö", "99999999999999999999s"];
        for text in wrong.into_iter().chain(["18446744073709551615w", "1D"]) {
            text.parse::<TimeSpan>().unwrap_err();
        }
    }

    fn check(span_ms: u64, expected: &str) {
        let now_ms = 1_795_000_000_000;
        assert_eq!(ago(now_ms - span_ms, now_ms), expected);
    }

    #[test]
    fn how_long_ago_is_told_in_a_unit_that_fits() {
        check(0, "just now");
        check(999, "just now");
        check(1_000, "1 second ago");
        check(59_999, "60 seconds ago");
        check(2 * 60_000, "2 minutes ago");
        check(3_600_000, "60 minutes ago");
        check(86_400_000, "24 hours ago");
        check(3 * 86_400_000, "3 days ago");
        check(90 * 86_400_000, "13 weeks ago");
        assert_eq!(ago(0, 1_795_000_000_000), "never");
        assert_eq!(ago(5_000, 4_000), "just now");
    }
}
