//! Formats matrices for the terminal: a line for each configuration, and one legend for the signs
//! below.

use std::fmt::Write;

use indicatif::DecimalBytes;

use super::{GAP, WIDTH_MAX};
use crate::format::{self, FormattedValue, NONE, whole};
use crate::matrix::{IDLE, MatrixColumn, ReportMatrix, sign};
use crate::measure::MS_EACH;
use crate::suite::{ResultRow, ResultTable};

/// The heading of the last column.
const SIZE: &str = "file size";
/// The least width of the first column; in a narrower one a title would take more than two lines.
const TITLE_WIDTH_MIN: usize = 16;

/// Formats all matrices and the legend; empty if there are none.
pub(crate) fn matrices(all: &[ReportMatrix], tables: &[ResultTable]) -> String {
    let Some((baseline, rounds)) = all.iter().find_map(|matrix| matrix.baseline(tables)) else {
        return String::new();
    };
    let mut parts: Vec<String> =
        all.iter().map(|matrix| lines(matrix, tables).join("\n")).collect();
    let legend = format!(
        "Multiples of {baseline}'s rate with their interval over {} rounds: ▲ faster, ▼ slower, = \
         no difference found, ? too few rounds for a verdict. Rates, ms and MB apply only to this \
         machine.",
        whole(rounds)
    );
    parts.push(format::wrap(&legend, WIDTH_MAX).join("\n"));
    parts.join("\n")
}

fn lines(matrix: &ReportMatrix, tables: &[ResultTable]) -> Vec<String> {
    let columns = matrix.columns.iter().map(|column| self::column(column, matrix, tables));
    let sizes = matrix.rows.iter().map(|row| {
        let size = row.file_bytes.map(|bytes| DecimalBytes(bytes).to_string());
        size.unwrap_or_else(|| NONE.to_owned())
    });
    let sizes: Vec<String> = std::iter::once(SIZE.to_owned()).chain(sizes).collect();
    let columns: Vec<Vec<String>> = columns.chain([sizes]).collect();
    let widths: Vec<usize> = columns.iter().map(|cells| width(cells)).collect();
    let names: Vec<String> = matrix.rows.iter().map(|row| row.name.clone()).collect();
    let mut lines = format::wrap(&matrix.title, width(&names).max(TITLE_WIDTH_MIN));
    let first = width(&names).max(width(&lines));
    let title = lines.pop().unwrap_or_default();
    for (index, name) in std::iter::once(title).chain(names).enumerate() {
        let is_idle = index > 0 && matrix.rows[index - 1].file_bytes.is_none();
        let mut line = format!("{name:first$}");
        if is_idle {
            line.push_str(GAP);
            line.push_str(IDLE);
        } else {
            for (cells, width) in columns.iter().zip(&widths) {
                write!(line, "{GAP}{:>width$}", cells[index]).expect("a string takes everything");
            }
        }
        lines.push(line);
    }
    lines
}

fn width(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Returns the heading and cells of a column; the parts of its cells are aligned.
fn column(column: &MatrixColumn, matrix: &ReportMatrix, tables: &[ResultTable]) -> Vec<String> {
    let cells = matrix.rows.iter().map(|row| match ReportMatrix::cell(column, row, tables) {
        Some(row) => cell(row),
        None => (NONE.to_owned(), None),
    });
    let cells: Vec<(String, Option<String>)> = cells.collect();
    // A cell with only one part is aligned to the right and does not widen the others.
    let ranges = cells.iter().filter_map(|(_, range)| range.as_ref());
    let width = ranges.map(|range| range.chars().count()).max().unwrap_or(0);
    let cells = cells.into_iter().map(|(figure, range)| match range {
        Some(range) if width > 0 => format!("{figure} {range:width$}"),
        _ => figure,
    });
    std::iter::once(column.name.to_string()).chain(cells).collect()
}

/// Returns the parts of a cell: the ratio with its sign, and the interval; for the baseline, the
/// rate. Where the time of one operation is clearer than the rate, that time replaces the
/// interval.
fn cell(row: &ResultRow) -> (String, Option<String>) {
    let ms = row.metrics.get(MS_EACH).map(|ms| format::wait(ms.median * 1e3).value);
    match (&row.difference, ms) {
        (None, None) => (format!("{}/s", format::median(&row.rate)), None),
        (None, Some(ms)) => (ms, None),
        (Some(difference), ms) => {
            let FormattedValue { value, range } = format::judged(&row.relative, difference);
            let beside = ms.or(range).unwrap_or_default();
            (format!("{value}{}", sign(difference.verdict)), Some(beside))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample as pages;
    use crate::matrix::sample;

    #[test]
    fn a_configuration_is_a_line() {
        let (matrix, tables) = sample::matrix();
        let expected = "20 messages
of 10 bytes   insert   select          set-up  file size
production   1,000/s  1,000/s         1.00 ms    4.10 MB
mmap-256mb   not measured: has no effect here
<other>        2.50▲    1.00=  0.020? 50.0 ms    8.19 kB
Multiples of production's rate with their interval over 8 rounds: ▲ faster, ▼ slower,";
        let found = matrices(&[matrix], &tables);
        assert!(found.starts_with(expected), "{found}");
        assert!(found.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{found}");
    }

    #[test]
    fn without_a_matrix_there_is_nothing_to_explain() {
        assert_eq!(matrices(&[], &pages::tables()), "");
    }
}
