//! Reads a program's query log for `--queries`, and prints the doctor's results for it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use doctor::{QueryLog, WorkloadQuery, WorkloadSummary, counted};
use protocol::ErrorCode;

use crate::output::{CommandError, Printer};

/// The maximum number of lines of the table.
const SHOWN_MAX: usize = 15;
/// The maximum length of a printed statement.
const SHAPE_CHARACTERS_MAX: usize = 60;
/// The maximum number of printed statements that were rejected.
const REJECTED_MAX: usize = 3;

/// Reads the logs; `-` is the standard input.
pub(super) fn read(logs: &[PathBuf]) -> anyhow::Result<Option<QueryLog>> {
    if logs.is_empty() {
        return Ok(None);
    }
    let mut workload = QueryLog::default();
    for log in logs {
        let read = if log == Path::new("-") {
            workload.read(io::stdin().lock())
        } else {
            File::open(log).and_then(|file| workload.read(BufReader::new(file)))
        };
        read.with_context(|| format!("--queries {}", log.display()))?;
    }
    let none = || {
        let hint = "supported: statements (one per line, or separated by `;`), output of SQLite's \
                    trace, and logs of Django, SQLAlchemy and Rails";
        CommandError::new(ErrorCode::InvalidFile, "no statement found in --queries").with_hint(hint)
    };
    ensure!(!workload.is_empty(), none());
    Ok(Some(workload))
}

pub(super) fn print(workload: &WorkloadSummary, output: Printer) {
    let WorkloadSummary { statements_count, others_count, unread_lines_count, .. } = workload;
    let shapes_count = workload.shapes_count.try_into().unwrap_or(u64::MAX);
    output.line(format_args!(""));
    output.line(format_args!(
        "workload: {} of {}; ignored: {} and {}",
        counted(*statements_count, "statement", "statements"),
        counted(shapes_count, "shape", "shapes"),
        counted(*others_count, "other statement", "other statements"),
        counted(*unread_lines_count, "line without a statement", "lines without a statement")
    ));
    let time = if workload.timed { "share of time" } else { "share" };
    output.line(format_args!("{time:>14} {:>8} {:>10} {:>10}", "calls", "now", "advised"));
    for query in workload.queries.iter().take(SHOWN_MAX) {
        print_query(query, output);
    }
    let left = workload.queries.len().saturating_sub(SHOWN_MAX);
    if left > 0 {
        output.line(format_args!("{:>14} and {left} more; see --json", ""));
    }
    for rejected in workload.rejected.iter().take(REJECTED_MAX) {
        let (shape, message) = (short(&rejected.shape), &rejected.message);
        output.line(format_args!("cannot run on this file: {shape}: {}", line(message)));
    }
    let left = workload.rejected.len().saturating_sub(REJECTED_MAX);
    if left > 0 {
        output.line(format_args!("cannot run on this file: {left} more; see --json"));
    }
    if !workload.unused_indexes.is_empty() {
        let names = workload.unused_indexes.join(", ");
        output.line(format_args!("indexes that no statement uses: {names}"));
    }
}

/// Prints a line such as `        71 %      412   9.1 ms  0.02 ms  SELECT …`.
fn print_query(query: &WorkloadQuery, output: Printer) {
    let share = query.time_ratio.map_or_else(String::new, |it| format!("{:.1} %", it * 100.0));
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1e3));
    let (each, advised) = (ms(query.measured_before_us), ms(query.measured_after_us));
    let (calls, shape) = (query.calls_count, short(&query.shape));
    output.line(format_args!("{share:>14} {calls:>8} {each:>7} ms {advised:>7} ms  {shape}"));
}

fn short(shape: &str) -> String {
    let shape = line(shape);
    if shape.chars().count() <= SHAPE_CHARACTERS_MAX {
        return shape;
    }
    let short: String = shape.chars().take(SHAPE_CHARACTERS_MAX - 1).collect();
    format!("{short}…")
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
