//! Implements `warren doctor FILE --watch`: prints a line for each interval, and one for each
//! active process.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use doctor::{FileWatcher, WatchInterval, WatchedProcess, counted};
use indicatif::DecimalBytes;

use super::doctor_output::DoctorOutput;
use crate::output::{CommandError, Printer};

/// The number of lines between two table headings.
const LINES_PER_HEAD: u64 = 20;
/// The age from which an open snapshot is reported.
const SNAPSHOT_MS: u64 = 1_000;

/// Whether the file is watched, and how.
#[derive(Args)]
pub(crate) struct WatchArguments {
    /// Watch the file until Ctrl-C. Prints one line per interval: commits, WAL, readers and
    /// writers.
    #[arg(long, conflicts_with_all = ["login", "fix", "query", "queries", "require", "history"])]
    watch: bool,
    /// With --watch: length of an interval.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, requires = "watch")]
    interval: f64,
    /// With --watch: stop after this many intervals.
    #[arg(long, value_name = "N", requires = "watch")]
    count: Option<u64>,
}

/// The options of a watch.
#[derive(Clone, Copy)]
pub(super) struct WatchPlan {
    interval: Duration,
    count: Option<u64>,
}

impl WatchArguments {
    /// Returns the options; `None` without `--watch`.
    pub(super) fn given(&self) -> anyhow::Result<Option<WatchPlan>> {
        let interval = Duration::try_from_secs_f64(self.interval).ok();
        let interval = interval.filter(|interval| !interval.is_zero());
        let message = "--interval must be a number of seconds above 0";
        let interval = interval.ok_or_else(|| CommandError::usage(message))?;
        Ok(self.watch.then_some(WatchPlan { interval, count: self.count }))
    }
}

pub(super) fn run(files: &[PathBuf], plan: WatchPlan, output: Printer) -> anyhow::Result<()> {
    let [file] = files else { bail!(CommandError::usage("--watch needs exactly one file")) };
    ensure!(file.is_file(), doctor::Error::FileNotFound(file.clone()));
    let WatchPlan { interval, count } = plan;
    let mut watch = FileWatcher::new(file)?;
    let mut seen = 0;
    while count.is_none_or(|count| seen < count) {
        let watched = watch.observe(interval)?;
        if seen % LINES_PER_HEAD == 0 {
            output.line(format_args!(
                "{:>9} {:>10} {:>10} {:>16} {:>8} {:>6}",
                "commits/s", "file", "WAL", "frames to copy", "writing", "users"
            ));
        }
        print(&watched, output);
        output.json(&DoctorOutput::Watch(watched))?;
        seen += 1;
    }
    Ok(())
}

fn print(watched: &WatchInterval, output: Printer) {
    let commits = watched.commits_per_second().map_or("-".to_owned(), |it| format!("{it:.1}"));
    let wal = watched.wal_bytes.map_or("-".to_owned(), |bytes| DecimalBytes(bytes).to_string());
    let frames = watched.wal_uncopied_count.zip(watched.wal_frames_count);
    let frames = frames.map_or("-".to_owned(), |(left, all)| format!("{left} of {all}"));
    output.line(format_args!(
        "{commits:>9} {:>10} {wal:>10} {frames:>16} {:>6.0} % {:>6}",
        DecimalBytes(watched.file_bytes).to_string(),
        watched.writing_ratio * 100.0,
        watched.users.len()
    ));
    for user in &watched.users {
        let what = what(user);
        if !what.is_empty() {
            let (name, pid) = (&user.name, user.pid);
            output.line(format_args!("{:>10}{name} (pid {pid}) {}", "", what.join(", ")));
        }
    }
}

fn what(user: &WatchedProcess) -> Vec<String> {
    let mut what = Vec::new();
    if user.writing_ratio > 0.0 {
        what.push(format!("writes {:.0} % of the time", user.writing_ratio * 100.0));
    }
    match user.snapshot_duration_ms.filter(|ms| *ms >= SNAPSHOT_MS) {
        Some(ms) => {
            let seconds = Duration::from_millis(ms).as_secs_f64();
            what.push(format!("has read the same snapshot for {seconds:.0} s"));
        }
        None if user.reading_ratio > 0.0 => {
            what.push(format!("reads {:.0} % of the time", user.reading_ratio * 100.0));
        }
        None => {}
    }
    if let Some(frames) = user.behind_frames_count.filter(|frames| *frames > 0) {
        what.push(format!("{} behind", counted(frames.into(), "frame", "frames")));
    }
    what
}
