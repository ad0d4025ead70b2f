//! Tables that are a curve: rows called `<series>, <number> <unit>`.

use crate::suite::{ResultRow, ResultTable};

/// Fewer points are read more easily as bars.
const POINTS_MIN: usize = 6;
/// Rows that are no curve, drawn as a height: a baseline, and one more thing to compare with.
const LEVELS_MAX: usize = 2;

/// The curves of a table.
#[derive(Debug)]
pub(super) struct ChartSeries<'a> {
    /// Of the numbers.
    pub(super) unit: &'a str,
    /// In the order of their first rows.
    pub(super) curves: Vec<ChartCurve<'a>>,
    /// Rows that belong to no curve.
    pub(super) levels: Vec<&'a ResultRow>,
}

/// A series: at least two different numbers.
#[derive(Debug)]
pub(super) struct ChartCurve<'a> {
    pub(super) name: &'a str,
    /// By rising number, which is greater than 0.
    pub(super) points: Vec<(f64, &'a ResultRow)>,
}

/// `None` if bars say more.
pub(super) fn from_table(table: &ResultTable) -> Option<ChartSeries<'_>> {
    let mut groups: Vec<(&str, ChartCurve<'_>)> = Vec::new();
    let mut levels = Vec::new();
    for row in &table.rows {
        let Some((name, number, unit)) = parse(&row.name) else {
            levels.push(row);
            continue;
        };
        match groups.iter_mut().find(|(of, curve)| *of == unit && curve.name == name) {
            Some((_, curve)) => curve.points.push((number, row)),
            None => groups.push((unit, ChartCurve { name, points: vec![(number, row)] })),
        }
    }
    let mut curves: Vec<(&str, ChartCurve<'_>)> = Vec::new();
    for (unit, mut curve) in groups {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if curve.points.first().map(|point| point.0) < curve.points.last().map(|point| point.0) {
            curves.push((unit, curve));
        } else {
            levels.extend(curve.points.into_iter().map(|(_, row)| row));
        }
    }
    let unit = curves.first()?.0;
    let points: usize = curves.iter().map(|(_, curve)| curve.points.len()).sum();
    let is_one_picture = curves.iter().all(|(of, _)| *of == unit) && levels.len() <= LEVELS_MAX;
    (points >= POINTS_MIN && is_one_picture).then(|| ChartSeries {
        unit,
        curves: curves.into_iter().map(|(_, curve)| curve).collect(),
        levels,
    })
}

/// Series, number and unit. Numbers have a place on a logarithmic axis.
fn parse(name: &str) -> Option<(&str, f64, &str)> {
    let (series, rest) = name.rsplit_once(", ")?;
    let (number, unit) = rest.split_once(' ')?;
    let number: f64 = number.replace(',', "").parse().ok()?;
    (number.is_finite() && number > 0.0 && !series.is_empty()).then_some((series, number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;

    fn check(names: &[&str], expected: Option<&str>) {
        let rows = names.iter().map(|name| sample::row(name, 1_000.0)).collect();
        let table = ResultTable {
            name: "test".to_owned(),
            unit: "transactions".into(),
            title: String::new(),
            rows,
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
        assert_eq!(found.as_deref(), expected, "{names:?}");
    }

    #[test]
    fn six_rows_with_numbers_are_a_picture() {
        check(
            &["a, 1 x", "a, 1,000 x", "a, 10 x", "b, c, 10 x", "b, c, 1 x", "b, c, 2.5 x"],
            Some("a: 1 10 1000, b, c: 1 2.5 10 per x"),
        );
        check(&["a, 1 x", "a, 2 x", "a, 3 x", "a, 4 x", "a, 5 x"], None);
    }

    #[test]
    fn rows_without_numbers_are_levels() {
        let curve = ["a, 1 x y", "a, 2 x y", "a, 3 x y", "a, 4 x y", "a, 5 x y", "a, 6 x y"];
        check(
            &[&["bare"][..], &curve, &["b, 7 x y"]].concat(),
            Some("a: 1 2 3 4 5 6, [bare], [b, 7 x y] per x y"),
        );
        check(&[&["bare", "b", "c"][..], &curve].concat(), None);
    }

    #[test]
    fn two_units_are_no_picture() {
        check(&["a, 1 x", "a, 2 x", "a, 3 x", "b, 1 y", "b, 2 y", "b, 3 y"], None);
        check(&["a, 0 x", "a, -1 x", "a, inf x", "a, NaN x", "a, 1", "a"], None);
        check(&[], None);
    }
}
