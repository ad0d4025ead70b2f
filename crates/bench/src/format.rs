//! Formats measurements: the digits of a figure and the columns of a table, the same on the page
//! and in the terminal.
//!
//! # Invariants
//! - A range has as many decimals as its median.
//! - Bounds that equal the median are not shown.
//! - A verdict is shown only if there are enough rounds for one.
//! - A value that is not a number, or was not measured, is an en dash.

use std::collections::BTreeSet;
use std::fmt;

use crate::confidence_interval::{ConfidenceInterval, DifferenceVerdict, MedianDifference};
use crate::measure::Distribution;
use crate::sqlite_bench::EffectivePragma;
use crate::suite::{ResultRow, ResultTable};

/// The text in place of a figure that does not exist.
pub(crate) const NONE: &str = "–";

const SPREAD: &str = "median, 95 % interval";
/// The heading for too few samples for such an interval, which then ranges from the smallest to
/// the largest.
const EXTREMES: &str = "median, min–max";
const SAMPLES_MIN: usize = 6;
const LATENCY: &str = "latency";

/// A value, and the range of which it is the median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormattedValue {
    pub(crate) value: String,
    pub(crate) range: Option<String>,
}

impl fmt::Display for FormattedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.range {
            Some(range) => f.pad(&format!("{} ({range})", self.value)),
            None => f.pad(&self.value),
        }
    }
}

/// One measurement of every row of a table.
#[derive(Debug)]
pub(crate) struct MetricColumn {
    pub(crate) heading: String,
    /// The second line of the heading.
    pub(crate) detail: &'static str,
    /// The values in the order of the rows.
    pub(crate) cells: Vec<Option<FormattedValue>>,
}

impl MetricColumn {
    pub(crate) fn says_something(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }

    pub(crate) fn is_latency(&self) -> bool {
        self.detail == LATENCY
    }
}

/// Returns all columns of a table except the names of the rows.
pub(crate) fn columns(table: &ResultTable) -> Vec<MetricColumn> {
    let rows = &table.rows;
    let spread_of = if has_extremes(table) { EXTREMES } else { SPREAD };
    let of_rows = |heading: &str, detail, cell: &dyn Fn(&ResultRow) -> Option<FormattedValue>| {
        MetricColumn { heading: heading.to_owned(), detail, cells: rows.iter().map(cell).collect() }
    };
    let mut columns = vec![
        of_rows(&format!("{}/s", table.unit), spread_of, &|row| Some(spread(&row.rate))),
        of_rows("of baseline", spread_of, &|row| Some(ratio(&row.relative))),
        of_rows("verdict", "", &|row| row.difference.as_ref().and_then(verdict)),
        of_rows("verdict", "processor time", &|row| row.by_cpu.as_ref().and_then(verdict)),
        of_rows("published", "on another machine", &|row| row.published.map(single)),
        of_rows("average", LATENCY, &|row| {
            row.latency.and_then(|latency| latency.mean_us).map(wait)
        }),
        of_rows("P50", LATENCY, &|row| row.latency.map(|latency| wait(latency.p50_us))),
        of_rows("P95", LATENCY, &|row| row.latency.map(|latency| wait(latency.p95_us))),
        of_rows("P99", LATENCY, &|row| row.latency.map(|latency| wait(latency.p99_us))),
        of_rows("max", LATENCY, &|row| {
            let latency = row.latency.filter(|latency| latency.mean_us.is_some());
            latency.map(|latency| wait(latency.max_us))
        }),
    ];
    let metrics: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.metrics.keys().map(AsRef::as_ref)).collect();
    columns.extend(
        metrics
            .into_iter()
            .map(|name| of_rows(name, spread_of, &|row| row.metrics.get(name).map(spread))),
    );
    columns.retain(MetricColumn::says_something);
    columns
}

/// Describes the whiskers that a chart shows around the medians.
pub(crate) fn whisker(table: &ResultTable) -> &'static str {
    if has_extremes(table) { "lowest and highest value" } else { "95 % interval" }
}

fn has_extremes(table: &ResultTable) -> bool {
    table.rows.first().is_none_or(|row| row.rate.samples.len() < SAMPLES_MIN)
}

/// Returns the verdict's text, unless there are too few rounds.
fn verdict(difference: &MedianDifference) -> Option<FormattedValue> {
    (difference.verdict != DifferenceVerdict::TooFewRounds).then(|| format_difference(difference))
}

/// Returns the text of a difference.
pub(crate) fn format_difference(difference: &MedianDifference) -> FormattedValue {
    FormattedValue { value: difference.text.clone(), range: None }
}

/// Formats a measurement without its range.
pub(crate) fn median(of: &Distribution) -> FormattedValue {
    FormattedValue { range: None, ..spread(of) }
}

/// Formats a measurement with its range.
pub(crate) fn spread(spread: &Distribution) -> FormattedValue {
    let all = [spread.median, spread.interval.low, spread.interval.high];
    let decimals = if all.into_iter().all(is_whole) { 0 } else { decimals(spread.median) };
    ranged(spread, decimals)
}

/// Formats a multiple of the baseline with its range.
pub(crate) fn ratio(ratio: &Distribution) -> FormattedValue {
    ranged(ratio, decimals(ratio.median))
}

/// Formats a multiple of the baseline with the range on which its verdict is based, if it has one.
pub(crate) fn judged(ratio: &Distribution, difference: &MedianDifference) -> FormattedValue {
    let figure = ranged(
        &Distribution { interval: difference.interval, ..ratio.clone() },
        decimals(ratio.median),
    );
    let range = figure.range.filter(|_| difference.verdict != DifferenceVerdict::TooFewRounds);
    FormattedValue { range, ..figure }
}

/// Formats a count with thousands separators.
pub(crate) fn whole(count: impl fmt::Display) -> String {
    let digits = count.to_string();
    grouped_digits(&digits, digits.len())
}

/// Formats a count with its noun: `1 row`, `1,200 rows`.
pub(crate) fn counted(count: impl fmt::Display, singular: &str, plural: &str) -> String {
    let count = whole(count);
    let noun = if count == "1" { singular } else { plural };
    format!("{count} {noun}")
}

/// Formats a PRAGMA: the requested value, its fault if it has one, and whether it is SQLite's
/// default.
pub(crate) fn setting(setting: &EffectivePragma) -> String {
    let EffectivePragma { name, requested, default, fault, .. } = setting;
    let fault = fault.as_ref().map(|fault| format!(", {fault}")).unwrap_or_default();
    let default = if *default { " (the default)" } else { "" };
    format!("{name} {requested}{default}{fault}")
}

/// Formats a value on an axis in short form: `150k`.
pub(crate) fn tick(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    format!("{}{unit}", trimmed(value, 4))
}

/// Formats a value that a person requested in the digits of the request, without rounding errors
/// of calculations.
pub(crate) fn format_threshold(value: f64) -> String {
    trimmed(value, 9)
}

/// Formats a value without zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let digits = format!("{value:.decimals$}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Splits a text at spaces into lines of at most `characters_max` characters and of about equal
/// length.
pub(crate) fn wrap(text: &str, characters_max: usize) -> Vec<String> {
    let lines = |width: usize| {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    };
    let count = lines(characters_max).len();
    let balanced = (1..=characters_max).map(lines).find(|lines| lines.len() == count);
    balanced.unwrap_or_default()
}

/// Formats one figure; the digits are the same as those of a spread.
fn single(value: f64) -> FormattedValue {
    let decimals = if is_whole(value) { 0 } else { decimals(value) };
    FormattedValue { value: grouped(value, decimals), range: None }
}

/// Formats a time in the unit that fits.
pub(crate) fn wait(us: f64) -> FormattedValue {
    let (value, unit) = match us {
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    FormattedValue { value: format!("{} {unit}", grouped(value, decimals(value))), range: None }
}

fn ranged(spread: &Distribution, decimals: usize) -> FormattedValue {
    let Distribution { median, interval: ConfidenceInterval { low, high }, .. } = *spread;
    let is_range = low.to_bits() != high.to_bits();
    let range = is_range.then(|| format!("{}–{}", grouped(low, decimals), grouped(high, decimals)));
    FormattedValue { value: grouped(median, decimals), range }
}

fn is_whole(value: f64) -> bool {
    value.fract().abs() < f64::EPSILON
}

/// Returns the number of decimals that shows two or three significant digits.
fn decimals(value: f64) -> usize {
    match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        0.0 => 2,
        size if size >= 0.01 => 3,
        size if size >= 0.001 => 4,
        size if size >= 0.000_1 => 5,
        _ => 6,
    }
}

/// Formats a number with thousands separators.
fn grouped(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let plain = format!("{value:.decimals$}");
    let whole = plain.find('.').unwrap_or(plain.len());
    grouped_digits(&plain, whole)
}

/// Groups the digits before the place `whole`.
fn grouped_digits(plain: &str, whole: usize) -> String {
    let first = plain.find(|c: char| c.is_ascii_digit()).unwrap_or_default();
    let mut grouped = String::new();
    for (index, digit) in plain.char_indices() {
        if index > first && index < whole && (whole - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[f64]) -> Distribution {
        Distribution::from_samples(samples.to_vec())
    }

    #[test]
    fn digits_are_few_and_grouped() {
        for (value, expected) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.003_21, "0.0032"),
            (0.012_34, "0.012"),
            (0.914, "0.91"),
            (7.125, "7.12"),
            (98.76, "98.8"),
            (999.4, "999"),
            (1_234.5, "1,234"),
            (121_922.0, "121,922"),
            (1_234_567.8, "1,234,568"),
            (-1_234.0, "-1,234"),
            (-123.0, "-123"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(single(value).value, expected, "{value}");
        }
    }

    #[test]
    fn a_range_has_the_decimals_of_its_median() {
        assert_eq!(ratio(&of(&[0.88, 0.91, 0.934])).to_string(), "0.91 (0.88–0.93)");
        assert_eq!(spread(&of(&[97.12, 98.66, 101.2])).to_string(), "98.7 (97.1–101.2)");
        assert_eq!(spread(&of(&[88_100.0, 91_234.4, 93_512.0])).value, "91,234");
        assert_eq!(format!("[{:>18}]", ratio(&of(&[1.5, 2.0]))), "[  1.75 (1.50–2.00)]");
    }

    #[test]
    fn a_range_of_nothing_is_not_shown() {
        assert_eq!(ratio(&of(&[1.0, 1.0])).to_string(), "1.00");
        assert_eq!(spread(&of(&[512.0])).to_string(), "512");
    }

    #[test]
    fn waits_have_the_unit_that_fits() {
        for (us, expected) in
            [(0.85, "0.85 µs"), (850.0, "850 µs"), (12_345.0, "12.3 ms"), (4_200_000.0, "4.20 s")]
        {
            assert_eq!(wait(us).value, expected);
        }
    }

    #[test]
    fn average_and_longest_wait_are_columns_where_the_average_was_taken() {
        let headings = |mean_us| {
            let mut tables = crate::html_report::sample::tables();
            let mut table = tables.swap_remove(0);
            for latency in table.rows.iter_mut().filter_map(|row| row.latency.as_mut()) {
                latency.mean_us = mean_us;
            }
            let columns = columns(&table).into_iter().filter(MetricColumn::is_latency);
            columns.map(|column| column.heading).collect::<Vec<_>>()
        };
        assert_eq!(headings(None), ["P50", "P95", "P99"]);
        assert_eq!(headings(Some(90.0)), ["average", "P50", "P95", "P99", "max"]);
    }

    #[test]
    fn what_was_asked_has_the_digits_in_which_it_was_asked() {
        for (value, expected) in [
            (0.12 * 60.0 / 60.0, "0.12"),
            (0.07 * 100.0, "7"),
            (0.1 + 0.2, "0.3"),
            (600.0, "600"),
            (0.001, "0.001"),
        ] {
            assert_eq!(format_threshold(value), expected);
        }
    }

    #[test]
    fn ticks_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1 + 0.2, "0.3"),
            (20.0, "20"),
            (1_000.0, "1k"),
            (150_000.0, "150k"),
            (2_500_000.0, "2.5M"),
        ] {
            assert_eq!(tick(value), expected);
        }
    }

    #[test]
    fn lines_are_about_as_long_as_each_other() {
        let name = "bare SQLite, one thread, batches of 1,000";
        assert_eq!(wrap(name, 41), [name]);
        assert_eq!(wrap(name, 40), ["bare SQLite, one thread,", "batches of 1,000"]);
        assert_eq!(wrap("a unbreakable b", 4), ["a", "unbreakable", "b"]);
        assert!(wrap(" ", 4).is_empty());
    }
}
