//! Records the history of files: `--history FOLDER` stores a line of figures and findings for each
//! run, and reports the changes since then.
//!
//! # Invariants
//! - A file of the directory belongs to one database, by its path, and has at most `RUNS_MAX`
//!   lines, the last run at its end. An unreadable line is counted, and does not cause a failure.
//!
//! # Not here
//! - The contents of a line → `docs/reference/formats/20-doctor-history.md`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use doctor::{DoctorReport, HistoryFigures, HistoryTrend, counted};
use engine::clock;
use indicatif::DecimalBytes;
use serde::{Deserialize, Serialize};

use super::finding_identity::identity;
use crate::output::{Printer, format_time};

/// The maximum number of runs in a file: six weeks of hourly runs.
const RUNS_MAX: usize = 1_000;
const DAY_MS: u64 = 86_400_000;
/// The window of comparison: figures are compared with its oldest run, findings with the last run.
const WINDOW_MS: u64 = 8 * DAY_MS;
/// The growth of the share of free pages from which one file among many is reported.
const GROWN_FREE: f64 = 0.1;
/// The growth factor of a file or WAL from which one file among many is reported.
const GROWN: u64 = 2;
/// The size above which a grown file or WAL is reported among many.
const LARGE_BYTES: u64 = 10 << 20;

/// The format of each line: `docs/reference/formats/20-doctor-history.md`.
const FORMAT: u32 = 20;

/// The recorded results of one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct HistoryRun {
    /// The format of the line, always [`FORMAT`]; a line with another one cannot be read.
    format: u32,
    /// The time at which the run ended, in milliseconds since 1970.
    ended_ms: u64,
    file_bytes: u64,
    wal_bytes: u64,
    /// The share of free pages, 0 to 1; `None` if no page could be read.
    free_ratio: Option<f64>,
    findings: Vec<HistoryFinding>,
}

/// A finding of one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct HistoryFinding {
    /// The identity of the finding: path, code and names.
    identity: String,
    /// The text `code: summary`.
    summary: String,
}

/// Compares the report with the history, and appends it. `None` at the first run.
pub(super) fn record_run(
    folder: &Path,
    report: &DoctorReport,
) -> anyhow::Result<Option<HistoryTrend>> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = path(folder, &report.file.path);
    let name = || path.display().to_string();
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(name),
    };
    let runs: Vec<HistoryRun> = text.lines().filter_map(parse).collect();
    let run = run(report);
    let trend = trend(&runs, &run, text.lines().count() - runs.len());
    let line = format!("{}\n", serde_json::to_string(&run)?);
    if runs.len() < RUNS_MAX && text.lines().count() < 2 * RUNS_MAX {
        let mut file =
            OpenOptions::new().create(true).append(true).open(&path).with_context(name)?;
        // A line that was cut off must not merge with the new one.
        let cut = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        file.write_all(format!("{cut}{line}").as_bytes()).with_context(name)?;
    } else {
        let kept = runs.iter().skip(runs.len().saturating_sub(RUNS_MAX / 2));
        let mut lines = String::new();
        for run in kept {
            lines.push_str(&serde_json::to_string(run)?);
            lines.push('\n');
        }
        let new = path.with_extension("new");
        fs::write(&new, lines + &line).with_context(name)?;
        fs::rename(&new, &path).with_context(name)?;
    }
    Ok(trend)
}

/// Returns the path of a database's history: the database's file name, and a hash of its path.
fn path(folder: &Path, database: &str) -> PathBuf {
    let name = Path::new(database).file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(80).collect();
    let hash = blake3::hash(database.as_bytes()).to_hex();
    folder.join(format!("{name}-{}.jsonl", &hash[..16]))
}

/// Parses a line; `None` if it does not have this format.
fn parse(line: &str) -> Option<HistoryRun> {
    serde_json::from_str(line).ok().filter(|run: &HistoryRun| run.format == FORMAT)
}

fn run(report: &DoctorReport) -> HistoryRun {
    let file = &report.file;
    let ratio = |(free, all): (u64, u64)| {
        let (free, all) = (u32::try_from(free).ok()?, u32::try_from(all).ok()?);
        (all > 0).then(|| f64::from(free) / f64::from(all))
    };
    let found = report.findings.iter().map(|finding| HistoryFinding {
        identity: identity(&file.path, finding.code.as_str(), &finding.details),
        summary: format!("{}: {}", finding.code, finding.summary),
    });
    HistoryRun {
        format: FORMAT,
        ended_ms: clock::now_ms(),
        file_bytes: file.file_bytes,
        wal_bytes: file.wal_bytes.unwrap_or(0),
        free_ratio: file.free_pages_count.zip(file.pages_count).and_then(ratio),
        findings: found.collect(),
    }
}

fn trend(runs: &[HistoryRun], now: &HistoryRun, unread_lines_count: usize) -> Option<HistoryTrend> {
    let last = runs.last()?;
    let start = now.ended_ms.saturating_sub(WINDOW_MS);
    let before =
        runs.iter().find(|run| (start..=now.ended_ms).contains(&run.ended_ms)).unwrap_or(last);
    let missing = |of: &HistoryRun, from: &HistoryRun| -> Vec<String> {
        let has =
            |found: &&HistoryFinding| !from.findings.iter().any(|it| it.identity == found.identity);
        of.findings.iter().filter(has).map(|found| found.summary.clone()).collect()
    };
    Some(HistoryTrend {
        since_ms: before.ended_ms,
        before: figures(before),
        now: figures(now),
        new: missing(now, last),
        gone: missing(last, now),
        unread_lines_count,
    })
}

const fn figures(run: &HistoryRun) -> HistoryFigures {
    HistoryFigures {
        file_bytes: run.file_bytes,
        wal_bytes: run.wal_bytes,
        free_ratio: run.free_ratio,
    }
}

/// Prints the changes, as lines.
pub(super) fn print(trend: &HistoryTrend, output: Printer) {
    output.line(format_args!(""));
    output.line(format_args!("{}", text(trend)));
    let changes = [("new since the last run", &trend.new), ("no longer found", &trend.gone)];
    for (label, summaries) in changes {
        for summary in summaries {
            output.line(format_args!("  {label}: {summary}"));
        }
    }
    if trend.unread_lines_count > 0 {
        let count = trend.unread_lines_count.try_into().unwrap_or(u64::MAX);
        let lines = counted(count, "line", "lines");
        output.line(format_args!("  {lines} of the history could not be read"));
    }
}

/// Returns the text `since 2026-11-17 10:02:33Z (7 days): 14.4 MB -> 20.1 MB, free pages 12 % -> 31
/// %, …`.
pub(super) fn text(trend: &HistoryTrend) -> String {
    let (before, now) = (trend.before, trend.now);
    let days = clock::now_ms().saturating_sub(trend.since_ms) / DAY_MS;
    let days = counted(days, "day", "days");
    let percent = |ratio: Option<f64>| {
        ratio.map_or_else(|| "?".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0))
    };
    format!(
        "since {} ({days}): {} -> {}, free pages {} -> {}, WAL {} -> {}",
        format_time(trend.since_ms),
        DecimalBytes(before.file_bytes),
        DecimalBytes(now.file_bytes),
        percent(before.free_ratio),
        percent(now.free_ratio),
        DecimalBytes(before.wal_bytes),
        DecimalBytes(now.wal_bytes)
    )
}

/// Returns whether one file among many has changed enough to be reported.
pub(super) fn is_notable(trend: &HistoryTrend) -> bool {
    let (before, now) = (trend.before, trend.now);
    let has_grown =
        |before: u64, now: u64| now > LARGE_BYTES && now >= before.saturating_mul(GROWN);
    let free = now.free_ratio.zip(before.free_ratio);
    has_grown(before.file_bytes, now.file_bytes)
        || has_grown(before.wal_bytes, now.wal_bytes)
        || free.is_some_and(|(now, before)| now - before >= GROWN_FREE)
}
