//! Implements `warren doctor` for several files: gives each a share of the time, counts what they
//! have in common, and continues if one cannot be examined.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use doctor::{DoctorFinding, ExamineOptions};
use engine::clock;
use protocol::ErrorCode;
use walkdir::WalkDir;

use super::baseline::FindingsBaseline;
use super::doctor_args::{DoctorArgs, DoctorFormat};
use super::doctor_output::DoctorOutput;
use super::examined_file::ExaminedFile;
use super::fleet_report::{FleetReport, FleetSummary};
use super::ignore::IgnoreFile;
use super::severity_status::{severity_status, verdict};
use super::{format, history};
use crate::output::{CommandError, ErrorDetails, Printer};

/// The minimum share of a file: enough to open it.
const SHARE_MIN: Duration = Duration::from_millis(20);
const STATUS_UNEXAMINED: u8 = 1;

/// Returns whether several files are named, or an option is used that only this mode supports.
pub(super) fn is_wanted(arguments: &DoctorArgs) -> bool {
    let is_single = arguments.fix.is_some() || arguments.undo || arguments.login.is_some();
    let has_many = arguments.files.len() > 1 || arguments.files.iter().any(|file| file.is_dir());
    !is_single
        && (has_many || arguments.format != DoctorFormat::Text || arguments.baseline.is_some())
}

pub(super) fn run(
    arguments: &DoctorArgs,
    options: &ExamineOptions,
    output: Printer,
) -> anyhow::Result<()> {
    let started = clock::now();
    let total = total_budget(arguments)?;
    let share = |files_left: usize| {
        let left = total.map(|total| total.saturating_sub(started.elapsed()));
        share(options.time_limit, left, files_left)
    };
    let mut survey = FleetExamination::new(arguments, options)?;
    let files = files(arguments)?;
    let bar = output.progress();
    bar.set_length(files.len().try_into().unwrap_or(u64::MAX));
    let mut cut_short = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let budget = share(files.len() - index);
        let examined = survey.examine(path, budget);
        if examined.is_incomplete() && budget < options.time_limit {
            cut_short.push((path, examined, budget));
            continue;
        }
        survey.record(path, examined)?;
        bar.inc(1);
    }
    // The time that other files did not need goes to the files whose share was too small.
    let mut files_left = cut_short.len();
    for (path, mut examined, budget) in cut_short {
        let larger = share(files_left);
        if larger > budget {
            examined = survey.examine(path, larger);
        }
        survey.record(path, examined)?;
        files_left -= 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    survey.end(started.elapsed(), output)
}

/// The examination of several files.
struct FleetExamination<'a> {
    arguments: &'a DoctorArgs,
    options: &'a ExamineOptions,
    ignores: IgnoreFile,
    baseline: Option<FindingsBaseline>,
    summary: FleetSummary,
    /// The files that the output names.
    named: Vec<ExaminedFile>,
    status: u8,
}

impl<'a> FleetExamination<'a> {
    fn new(arguments: &'a DoctorArgs, options: &'a ExamineOptions) -> anyhow::Result<Self> {
        let ignores = IgnoreFile::read(arguments.ignore.as_deref())?;
        let baseline = arguments.baseline.as_deref().map(FindingsBaseline::read).transpose()?;
        let (summary, named) = (FleetSummary::default(), Vec::new());
        Ok(Self { arguments, options, ignores, baseline, summary, named, status: 0 })
    }

    fn examine(&self, path: &Path, budget: Duration) -> ExaminedFile {
        let ignore = self.ignores.rules_for(path);
        examine(
            path,
            self.arguments,
            &ExamineOptions { time_limit: budget, ignore, ..self.options.clone() },
        )
    }

    /// Counts a file whose examination is not repeated.
    fn record(&mut self, path: &Path, mut examined: ExaminedFile) -> anyhow::Result<()> {
        if let Some(report) = &mut examined.report {
            self.ignores.mark_used(path, report);
            self.summary.ignored_count += report.ignored.len();
            if let Some(folder) = &self.arguments.history {
                report.trend = history::record_run(folder, report)?;
            }
        }
        if let Some(baseline) = &mut self.baseline {
            examined.known = baseline.take_known(&examined);
        }
        self.summary.count(&examined);
        let status = match &examined.error {
            Some(_) => STATUS_UNEXAMINED,
            None => severity_status(examined.gravest(), examined.is_incomplete(), self.arguments),
        };
        self.status = graver(self.status, status);
        let format = self.arguments.format;
        let is_all = format == DoctorFormat::Prometheus || format == DoctorFormat::Junit;
        if is_all || examined.is_notable() {
            self.named.push(examined);
        }
        Ok(())
    }

    fn end(mut self, elapsed: Duration, output: Printer) -> anyhow::Result<()> {
        self.named.sort_by(|a, b| Path::new(&a.path).cmp(Path::new(&b.path)));
        self.summary.gone = self.baseline.map(FindingsBaseline::into_missing).unwrap_or_default();
        self.summary.unused_ignore_rules = self.ignores.needless();
        self.summary.duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        match self.arguments.format {
            DoctorFormat::Text => {
                print(&self.named, &self.summary, output);
                let report = FleetReport { files: self.named, summary: self.summary };
                output.json(&DoctorOutput::Fleet(report))?;
            }
            format => format::print(format, &self.named),
        }
        verdict(self.status)
    }
}

/// Returns the more severe status: errors in a file outweigh a file that could not be examined,
/// which outweighs all others.
fn graver(a: u8, b: u8) -> u8 {
    const ORDER: &[u8] = &[0, 3, 5, 1, 4];
    let rank = |status: u8| ORDER.iter().position(|it| *it == status).unwrap_or(0);
    if rank(a) >= rank(b) { a } else { b }
}

fn total_budget(arguments: &DoctorArgs) -> anyhow::Result<Option<Duration>> {
    let Some(seconds) = arguments.total_time_limit else { return Ok(None) };
    let total = Duration::try_from_secs_f64(seconds).ok().filter(|total| !total.is_zero());
    let message = "--total-time-limit must be a number of seconds above 0";
    Ok(Some(total.ok_or_else(|| CommandError::usage(message))?))
}

/// Returns the time for one of `files_left` files, from the time that is left; at most `max`.
fn share(max: Duration, left: Option<Duration>, files_left: usize) -> Duration {
    let files_left = u32::try_from(files_left).unwrap_or(u32::MAX).max(1);
    left.map_or(max, |left| (left / files_left).max(SHARE_MIN).min(max))
}

fn examine(path: &Path, arguments: &DoctorArgs, options: &ExamineOptions) -> ExaminedFile {
    let examined = arguments
        .key
        .encryption(path)
        .and_then(|encryption| Ok(doctor::examine(path, &encryption, options)?));
    let (report, error) = match examined {
        Ok(report) => (Some(report), None),
        Err(error) => (None, Some(ErrorDetails::from(&error))),
    };
    ExaminedFile { path: path.display().to_string(), report, error, known: Vec::new() }
}

/// Returns the files to check, each once: all files that are named, and the databases in
/// directories.
fn files(arguments: &DoctorArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &arguments.files {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| path.display().to_string())?;
            if entry.file_type().is_file() && is_meant(entry.path(), &arguments.glob) {
                files.push(entry.into_path());
            }
        }
    }
    files.sort();
    files.dedup();
    let none = || {
        CommandError::new(ErrorCode::FileNotFound, "no SQLite files found")
            .with_hint("to check encrypted files, pass --glob")
    };
    ensure!(!files.is_empty(), none());
    Ok(files)
}

fn is_meant(path: &Path, globs: &[glob::Pattern]) -> bool {
    if globs.is_empty() {
        return doctor::is_database(path);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    globs.iter().any(|glob| glob.matches(&name))
}

fn print(named: &[ExaminedFile], summary: &FleetSummary, output: Printer) {
    for examined in named {
        let path = &examined.path;
        if let Some(ErrorDetails { code, message, .. }) = &examined.error {
            output.line(format_args!("{path}: not examined: {message} [{code}]"));
        }
        for DoctorFinding { severity, code, summary, .. } in examined.new_findings() {
            output.line(format_args!("{path}: {severity} {code}: {summary}"));
        }
        let trend = examined.report.as_ref().and_then(|report| report.trend.as_ref());
        if let Some(trend) = trend.filter(|trend| history::is_notable(trend)) {
            output.line(format_args!("{path}: {}", history::text(trend)));
        }
        if examined.is_incomplete() {
            output.line(format_args!("{path}: not fully checked"));
        }
    }
    for gone in &summary.gone {
        output.line(format_args!("no longer found: {gone}"));
    }
    for line in &summary.unused_ignore_rules {
        output.line(format_args!("unused ignore rule: {line}"));
    }
    if !named.is_empty() {
        output.line(format_args!(""));
    }
    let counted = |count: usize, singular: &str, plural: &str| {
        doctor::counted(count.try_into().unwrap_or(u64::MAX), singular, plural)
    };
    for (code, count) in &summary.finding_counts {
        output.line(format_args!("{count:7} {code:26} {}", code.entry().title));
    }
    output.line(format_args!(
        "{} in {:.1} s: {} with errors, {} with warnings, {} not fully checked, {} not \
         examined{}{}",
        counted(summary.files_count, "file", "files"),
        Duration::from_millis(summary.duration_ms).as_secs_f64(),
        summary.errors_count,
        summary.warnings_count,
        summary.incomplete_count,
        summary.unexamined_count,
        match summary.known_count {
            0 => String::new(),
            count => format!(", {}", counted(count, "known finding", "known findings")),
        },
        match summary.ignored_count {
            0 => String::new(),
            count => format!(", {}", counted(count, "ignored finding", "ignored findings")),
        }
    ));
}
