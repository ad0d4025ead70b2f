//! Combines tables into the published overview: configurations × operations, with the time to set
//! up a file and its size.
//!
//! # Invariants
//! - The only figures of a matrix itself are the file sizes: all others are those of the report's
//!   tables.
//! - The verdict and the interval of a cell come from one computation, so they never contradict
//!   each other.
//!
//! # Not here
//! - Layout → `text_report/matrix.rs`, `html_report/matrix.rs`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::confidence_interval::DifferenceVerdict;
use crate::suite::{ResultRow, ResultTable};

/// A matrix that combines several tables with the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportMatrix {
    /// The name of the matrix, with which the names of its tables begin.
    pub name: String,
    /// The title, which describes the data, such as `1,000 messages of 3,500 bytes`.
    pub title: String,
    /// The operations, from left to right.
    pub columns: Vec<MatrixColumn>,
    /// The configurations, from top to bottom.
    pub rows: Vec<MatrixRow>,
}

/// A column of a matrix: an operation, and the table that has its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatrixColumn {
    /// The heading of the column.
    #[schema(value_type = String)]
    pub name: Cow<'static, str>,
    /// The name of the report's table that has its figures.
    pub table: String,
}

/// A row of a matrix: one configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatrixRow {
    /// The name of the configuration's row in the tables.
    pub name: String,
    /// The size of the file with all rows, in bytes, before the measurements; null if the
    /// configuration was not measured because none of its changes has an effect.
    pub file_bytes: Option<u64>,
}

impl ReportMatrix {
    /// Returns the row of the column's table, if it was measured.
    pub(crate) fn cell<'t>(
        column: &MatrixColumn,
        row: &MatrixRow,
        tables: &'t [ResultTable],
    ) -> Option<&'t ResultRow> {
        let table = tables.iter().find(|table| table.name == column.table)?;
        table.rows.iter().find(|of| of.name == row.name)
    }

    /// Returns the baseline's name and its number of rounds.
    pub(crate) fn baseline<'t>(&self, tables: &'t [ResultTable]) -> Option<(&'t str, usize)> {
        let first = self.columns.first()?;
        let table = tables.iter().find(|table| table.name == first.table)?;
        let baseline = table.rows.first()?;
        Some((&baseline.name, baseline.rate.samples.len()))
    }
}

/// The text in place of the figures of a row that was not measured.
pub(crate) const IDLE: &str = "not measured: has no effect here";

/// Returns one character for a verdict.
pub(crate) fn sign(verdict: DifferenceVerdict) -> char {
    match verdict {
        DifferenceVerdict::Faster => '▲',
        DifferenceVerdict::Slower => '▼',
        DifferenceVerdict::NoDifference => '=',
        DifferenceVerdict::TooFewRounds => '?',
    }
}

#[cfg(test)]
pub(crate) mod sample {
    use super::*;
    use crate::confidence_interval::MedianDifference;
    use crate::html_report::sample;
    use crate::measure::{Distribution, MS_EACH};

    /// Returns a row at this multiple of the baseline's 1,000 in each round.
    fn row(name: &str, ratio: Option<f64>, rounds: usize, is_setup: bool) -> ResultRow {
        let ratios = vec![ratio.unwrap_or(1.0); rounds];
        let rates: Vec<f64> = ratios.iter().map(|ratio| ratio * 1_000.0).collect();
        let ms = rates.iter().map(|rate| 1e3 / rate).collect();
        ResultRow {
            rate: Distribution::from_samples(rates),
            relative: Distribution::from_samples(ratios.clone()),
            difference: ratio.map(|_| MedianDifference::from_ratios(&ratios, 2)),
            metrics: is_setup
                .then(|| (MS_EACH.into(), Distribution::from_samples(ms)))
                .into_iter()
                .collect(),
            ..sample::row(name, 1_000.0)
        }
    }

    /// Returns a matrix of three configurations: one has too few rounds in the last table, and one
    /// was not measured.
    pub(crate) fn matrix() -> (ReportMatrix, Vec<ResultTable>) {
        let tables = [("insert", 2.5, 8), ("list", 1.0, 8), ("setup", 0.02, 2)];
        let tables = tables.map(|(operation, ratio, rounds)| ResultTable {
            name: format!("20-{operation}"),
            unit: "operations".into(),
            title: format!("{operation}, 20 messages"),
            rows: [("production", None), ("<other>", Some(ratio))]
                .map(|(name, ratio)| row(name, ratio, rounds, operation == "setup"))
                .into(),
        });
        let column = |name: &'static str, table: &str| MatrixColumn {
            name: name.into(),
            table: format!("20-{table}"),
        };
        let line = |name: &str, file_bytes| MatrixRow { name: name.to_owned(), file_bytes };
        let matrix = ReportMatrix {
            name: "20".to_owned(),
            title: "20 messages of 10 bytes".to_owned(),
            columns: vec![
                column("insert", "insert"),
                column("select", "list"),
                column("set-up", "setup"),
            ],
            rows: vec![
                line("production", Some(4_096_000)),
                line("mmap-256mb", None),
                line("<other>", Some(8_192)),
            ],
        };
        (matrix, tables.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_what_its_table_says_of_its_row() {
        let (matrix, tables) = sample::matrix();
        let cell = |column: usize, row: usize| {
            let row = ReportMatrix::cell(&matrix.columns[column], &matrix.rows[row], &tables)?;
            Some(row.difference.as_ref().map(|difference| difference.verdict))
        };
        assert_eq!(cell(0, 0), Some(None), "the baseline has no verdict");
        assert_eq!(cell(0, 1), None, "it was not measured");
        assert_eq!(cell(0, 2), Some(Some(DifferenceVerdict::Faster)));
        assert_eq!(cell(1, 2), Some(Some(DifferenceVerdict::NoDifference)));
        assert_eq!(cell(2, 2), Some(Some(DifferenceVerdict::TooFewRounds)));
        assert_eq!(matrix.baseline(&tables), Some(("production", 8)));
    }

    #[test]
    fn a_matrix_is_read_as_it_was_written() {
        let (matrix, _) = sample::matrix();
        let json = serde_json::to_string(&matrix).unwrap();
        assert_eq!(serde_json::from_str::<ReportMatrix>(&json).unwrap(), matrix);
        assert!(json.contains(r#"{"name":"mmap-256mb","file_bytes":null}"#), "{json}");
    }
}
