//! How numbers read in a finding.

/// `12.3 MB`: powers of ten, three digits.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: &[(u64, &str)] = &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = UNITS.iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(size, name)| format!("{} {name}", three_digits(ratio(bytes, *size))),
    )
}

/// `1,234,567`
pub(crate) fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Of an estimate: with the digits that it deserves.
pub(crate) fn format_estimate(value: f64) -> String {
    if value < 1_000.0 {
        return format!("{value:.0}");
    }
    let scale = 10_f64.powf(value.log10().floor() - 1.0);
    format_count(round_to_u64((value / scale).round() * scale))
}

/// `17 %`
pub(crate) fn format_percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A count that is far from where `f64` loses whole numbers.
#[expect(clippy::cast_precision_loss, reason = "a figure to show or to compare, not an address")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// The whole number nearest to a figure; 0 for what is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is right for a figure"
)]
pub(crate) fn round_to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// `a / b`, and 0 where there is no `b`.
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { to_f64(a) / to_f64(b) }
}

fn three_digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_they_deserve() {
        assert_eq!(
            [format_bytes(999), format_bytes(12_345), format_bytes(1_000_000)],
            ["999 bytes", "12.3 kB", "1.00 MB"]
        );
        assert_eq!(
            [format_count(0), format_count(999), format_count(1_234_567)],
            ["0", "999", "1,234,567"]
        );
        assert_eq!([format_estimate(123.4), format_estimate(123_456.0)], ["123", "120,000"]);
        assert_eq!(format_percent(0.256), "26 %");
    }
}
