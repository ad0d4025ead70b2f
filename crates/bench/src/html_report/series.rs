//! Builds the curves of a table from the points of its rows.

use crate::suite::{ResultRow, ResultTable};

/// The least number of points; fewer are easier to read as bars.
const POINTS_MIN: usize = 6;
/// The most rows that are on no curve and are drawn as a horizontal line: a baseline and others to
/// compare with.
const LEVELS_MAX: usize = 4;

/// The curves of a table.
#[derive(Debug)]
pub(super) struct ChartSeries<'a> {
    /// The unit of the numbers.
    pub(super) unit: &'a str,
    /// The curves in the order of their first rows.
    pub(super) curves: Vec<ChartCurve<'a>>,
    /// Rows that belong to no curve.
    pub(super) levels: Vec<&'a ResultRow>,
}

/// A curve with at least two different numbers.
#[derive(Debug)]
pub(super) struct ChartCurve<'a> {
    pub(super) name: &'a str,
    /// The points in ascending order of their numbers, which are greater than 0.
    pub(super) points: Vec<(f64, &'a ResultRow)>,
}

/// Returns the curves, or `None` if bars are clearer: too few points, points of several units, or
/// too many other rows.
pub(super) fn from_table(table: &ResultTable) -> Option<ChartSeries<'_>> {
    let unit = table.rows.iter().find_map(|row| Some(row.point.as_ref()?.unit.as_ref()))?;
    let mut found: Vec<ChartCurve<'_>> = Vec::new();
    let mut levels = Vec::new();
    for row in &table.rows {
        let Some(point) = row.point.as_ref().filter(|point| has_place(point.x)) else {
            levels.push(row);
            continue;
        };
        if point.unit != unit {
            return None;
        }
        match found.iter_mut().find(|curve| curve.name == point.series) {
            Some(curve) => curve.points.push((point.x, row)),
            None => found.push(ChartCurve { name: &point.series, points: vec![(point.x, row)] }),
        }
    }
    let mut curves: Vec<ChartCurve<'_>> = Vec::new();
    for mut curve in found {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if curve.points.first().map(|point| point.0) < curve.points.last().map(|point| point.0) {
            curves.push(curve);
        } else {
            levels.extend(curve.points.into_iter().map(|(_, row)| row));
        }
    }
    let points: usize = curves.iter().map(|curve| curve.points.len()).sum();
    (points >= POINTS_MIN && levels.len() <= LEVELS_MAX).then_some(ChartSeries {
        unit,
        curves,
        levels,
    })
}

/// Returns whether a logarithmic axis has a position for the number.
fn has_place(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;

    /// Checks the series of points `(series, x, unit)`; a row without a series is on no curve.
    fn check(points: &[(&str, f64, &'static str)], expected: Option<&str>) {
        let row = |(series, x, unit): &(&str, f64, &'static str)| match *series {
            "" => sample::row("bare", 1_000.0),
            series => sample::point(series, *x, unit, 1_000.0),
        };
        let table = ResultTable {
            name: "test".to_owned(),
            unit: "transactions".into(),
            title: String::new(),
            rows: points.iter().map(row).collect(),
        };
        let found = from_table(&table).map(|series| {
            let curves = series.curves.iter().map(|curve| {
                let points: Vec<String> = curve.points.iter().map(|p| p.0.to_string()).collect();
                format!("{}: {}", curve.name, points.join(" "))
            });
            let levels = series.levels.iter().map(|row| format!("[{}]", row.name));
            let all: Vec<String> = curves.chain(levels).collect();
            format!("{} per {}", all.join(", "), series.unit)
        });
        assert_eq!(found.as_deref(), expected, "{points:?}");
    }

    /// Returns six points of one curve.
    fn six(unit: &'static str) -> Vec<(&'static str, f64, &'static str)> {
        (1..=6).map(|x| ("a", f64::from(x), unit)).collect()
    }

    #[test]
    fn six_points_are_a_picture() {
        let (a, b) = ("a", "b, c");
        check(
            &[
                (a, 1.0, "x"),
                (a, 1e3, "x"),
                (a, 10.0, "x"),
                (b, 10.0, "x"),
                (b, 1.0, "x"),
                (b, 2.5, "x"),
            ],
            Some("a: 1 10 1000, b, c: 1 2.5 10 per x"),
        );
        check(&six("x")[1..], None);
    }

    #[test]
    fn rows_that_are_on_no_curve_are_levels() {
        let none = ("", 0.0, "");
        check(
            &[&[none][..], &six("x y"), &[("b", 7.0, "x y"), ("a", 0.0, "x y")]].concat(),
            Some("a: 1 2 3 4 5 6, [bare], [a, 0 x y], [b, 7 x y] per x y"),
        );
        check(&[&[none; LEVELS_MAX + 1][..], &six("x")].concat(), None);
    }

    #[test]
    fn two_units_are_no_picture() {
        check(&[six("x"), six("y")].concat(), None);
        let without_place = [0.0, -1.0, f64::INFINITY, f64::NAN];
        check(&without_place.map(|x| ("a", x, "x")), None);
        check(&[], None);
    }
}
