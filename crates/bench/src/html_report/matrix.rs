//! Renders matrices: tables whose cells are tinted by how much a configuration changes.
//!
//! # Invariants
//! - Color alone never carries information: each cell has its sign, its figures and its verdict in
//!   words.

use indicatif::DecimalBytes;
use maud::{Markup, html};

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::format::{self, FormattedValue, NONE, whole};
use crate::matrix::{IDLE, MatrixRow, ReportMatrix, sign};
use crate::measure::MS_EACH;
use crate::suite::{ResultRow, ResultTable};

/// The thresholds of the tints: this many times as fast, or as slow.
const TINTS: [f64; 3] = [1.25, 2.0, 5.0];

/// Returns the id that links refer to.
pub(super) fn id(matrix: &ReportMatrix) -> String {
    format!("matrix-{}", matrix.name)
}

pub(super) fn section(matrix: &ReportMatrix, tables: &[ResultTable]) -> Markup {
    let id = id(matrix);
    let heading = format!("{id}-heading");
    html! {
        section.matrix id=(id) aria-labelledby=(heading) {
            h2 id=(heading) { (matrix.title) }
            (legend(matrix, tables))
            div.scroll tabindex="0" role="region" aria-label={ "Overview: " (matrix.title) } {
                table {
                    thead { tr {
                        th scope="col" { "Configuration" }
                        @for column in &matrix.columns {
                            th scope="col" { a href={ "#" (column.table) } { (column.name) } }
                        }
                        th scope="col" { "file size" }
                    } }
                    tbody { @for row in &matrix.rows { "\n" (line(matrix, row, tables)) } }
                }
            }
        }
    }
}

fn legend(matrix: &ReportMatrix, tables: &[ResultTable]) -> Markup {
    let (baseline, rounds) = matrix.baseline(tables).unwrap_or_default();
    html! {
        p {
            "Multiples of the rate of " b { (baseline) } ", with the interval over " (whole(rounds))
            " rounds on which the verdict is based. Rates, milliseconds and megabytes apply only to "
            "this machine."
        }
        ul.legend {
            li class="faster-2" { "▲ faster" }
            li class="slower-2" { "▼ slower" }
            li { "= no difference found" }
            li class="few" { "? too few rounds for a verdict" }
        }
    }
}

fn line(matrix: &ReportMatrix, row: &MatrixRow, tables: &[ResultTable]) -> Markup {
    html! {
        tr {
            th scope="row" { (row.name) }
            @if let Some(bytes) = row.file_bytes {
                @for column in &matrix.columns {
                    @match ReportMatrix::cell(column, row, tables) {
                        Some(row) => { (cell(row)) }
                        None => { td { (NONE) } }
                    }
                }
                td { (DecimalBytes(bytes).to_string()) }
            } @else {
                td.idle colspan=(matrix.columns.len() + 1) { (IDLE) }
            }
        }
    }
}

fn cell(row: &ResultRow) -> Markup {
    let ms = row.metrics.get(MS_EACH).map(|ms| format::wait(ms.median * 1e3).value);
    let Some(difference) = &row.difference else {
        let here = ms.unwrap_or_else(|| format!("{}/s", format::median(&row.rate)));
        return html! { td { (here) " " small { "baseline" } } };
    };
    let FormattedValue { value, range } = format::judged(&row.relative, difference);
    let beside: Vec<String> = range.into_iter().chain(ms).collect();
    html! {
        td class=[class(difference, row.relative.median)] {
            span aria-hidden="true" { (sign(difference.verdict)) " " }
            (value) "×"
            @if !beside.is_empty() { " " small { (beside.join(", ")) } }
            span.said { ", " (difference.text) }
        }
    }
}

/// Returns the class that tints the cell.
fn class(difference: &MedianDifference, ratio: f64) -> Option<String> {
    let (name, times) = match difference.verdict {
        DifferenceVerdict::Faster => ("faster", ratio),
        DifferenceVerdict::Slower => ("slower", 1.0 / ratio),
        DifferenceVerdict::NoDifference => return None,
        DifferenceVerdict::TooFewRounds => return Some("few".to_owned()),
    };
    let tint = TINTS.iter().filter(|from| times >= **from).count();
    Some(format!("{name}-{tint}"))
}
