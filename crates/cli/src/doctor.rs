//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.

mod baseline;
mod fix;
mod fleet;
mod format;
mod history;
mod ignore;
mod load;
mod print;
mod settings;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doctor::{CatalogueEntry, DoctorReport, ExamineOptions, Severity, TempDirVariables};
use engine::FileEncryption;
use serde::Serialize;

use self::history::HistoryTrend;
use self::ignore::IgnoreFile;
use crate::account::{DataDir, StorageArgs};
use crate::key_args::CipherKeyArgs;
use crate::output::{NonZeroExit, Printer};
use crate::password::PasswordSource;

/// Find what is wrong with an SQLite file, or slow, and what to do about it. Changes nothing.
#[derive(Args)]
#[command(after_help = "Example:
  warren doctor app.db
  warren doctor app.db --query 'SELECT * FROM message WHERE sender = ?1 ORDER BY date'
  warren doctor app.db --queries log/development.log
  warren doctor mail.db --key-file mail.key --json
  warren doctor backup.db --require integrity
  warren tune --emit django --check; warren doctor app.db --settings settings.txt
  warren doctor /srv/app /srv/mail --glob '*.sqlite' --total-budget 600 --fail-on error
  warren doctor /srv/mail --glob '*.db' --key-command './key-of.sh $WARREN_FILE'
  warren doctor . --format github --baseline doctor.json --ignore doctor-ignore.txt
  warren doctor /srv/app --history /var/lib/doctor
  warren doctor app.db --watch
  warren doctor app.db --fix all --dry-run
  warren doctor app.db --fix index_duplicate
  warren doctor app.db --undo
  warren doctor --login ada --data ./data
  warren doctor --explain wal_pinned

Safe on a file that is in use: nothing is written, created or deleted, and nobody waits for it.
Only --fix and --undo change the file, and only while no program has it open.
Exit status: 0 nothing above info, 3 warnings, 4 errors in the file; 5 nothing above info, but not
all of the file was compared (too large for the budget, in use, or with what only its own program
has); 1 it could not be examined.")]
pub(crate) struct DoctorArgs {
    /// SQLite files, encrypted or not; of folders, all that are in them.
    #[arg(value_name = "FILE", required_unless_present_any = ["login", "explain", "list"])]
    files: Vec<PathBuf>,
    /// A query that the file is used for, to be looked at for a missing index.
    #[arg(long, value_name = "SQL")]
    query: Vec<String>,
    /// What a program asked of the file, to find the indexes for all of it: statements, one a line
    /// or each with a `;`, what SQLite's trace wrote, or a log of Django, `SQLAlchemy` or Rails; `-`
    /// for the standard input.
    #[arg(long, value_name = "LOG")]
    queries: Vec<PathBuf>,
    /// What a connection of a program answered, as the code of `warren tune --check` prints
    /// it: judged together with the file. `-` reads it from standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["login", "undo"])]
    settings: Option<PathBuf>,
    /// How long it may take; what there was no time for is said.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    budget: f64,
    /// For all files together: each gets a share of what is left of it, and at most --budget.
    #[arg(long, value_name = "SECONDS")]
    total_budget: Option<f64>,
    /// In folders, look at the files of these names only (`*.sqlite`), whatever they begin with;
    /// otherwise at those that begin as SQLite files do. Encrypted ones do not.
    #[arg(long, value_name = "PATTERN")]
    glob: Vec<glob::Pattern>,
    /// How to print.
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "fix")]
    format: DoctorFormat,
    /// From which severity on the exit status tells: error, warning, or never.
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    fail_on: FailOn,
    /// What `--json` printed before: what is in it does not count for the exit status any more.
    #[arg(long, value_name = "FILE", conflicts_with = "fix")]
    baseline: Option<PathBuf>,
    /// What is to be left as it is, with the reason: a line each, `CODE [FILE [NAME]] # why`.
    #[arg(long, value_name = "FILE", conflicts_with = "fix")]
    ignore: Option<PathBuf>,
    /// Keep figures and findings of each run in this folder, and say what has changed since the last
    /// one and in a week.
    #[arg(long, value_name = "FOLDER", conflicts_with = "fix")]
    history: Option<PathBuf>,
    #[command(flatten)]
    watch: watch::WatchArguments,
    /// What must have been done to the end: exit status 5 if it was not, whatever the warnings.
    #[arg(long, value_name = "WHAT")]
    require: Option<RequiredCheck>,
    /// Carry out the mends of this code, or of all that need no decision: first in memory, then,
    /// with a copy of the file in FILE.undo-N, on the file. It is as it was if that fails.
    #[arg(long, value_name = "CODE|all", conflicts_with_all = ["login", "require"])]
    fix: Option<String>,
    /// With --fix: carry them out in memory only, and say what would come of it.
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Put the file back as it was before the last --fix.
    #[arg(long, conflicts_with_all = ["fix", "login", "query", "queries", "require"])]
    undo: bool,
    #[command(flatten)]
    key: CipherKeyArgs,
    /// Say what a code means, where that is from, how it is found and what mends it.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "login", "query", "queries"])]
    explain: Option<String>,
    /// List what can be found.
    #[arg(long, conflicts_with_all = ["files", "login", "query", "queries", "explain"])]
    list: bool,
    /// An account's vault, on the data directory; its password is asked for.
    #[arg(long, conflicts_with_all = ["files", "key_file", "passphrase_file", "key_command", "cipher"])]
    login: Option<String>,
    #[command(flatten)]
    place: StorageArgs,
    #[command(flatten)]
    password: PasswordSource,
}

const STATUS_WARNING: u8 = 3;
const STATUS_ERROR: u8 = 4;
const STATUS_INCOMPLETE: u8 = 5;

/// What `--format` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DoctorFormat {
    /// For people; with --json, one JSON value.
    Text,
    /// Annotations of a workflow on GitHub.
    Github,
    /// XML as `JUnit` writes it: a test for each file.
    Junit,
    /// Metrics for Prometheus' textfile collector.
    Prometheus,
    /// SARIF 2.1.0.
    Sarif,
}

/// What `--fail-on` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Never,
}

/// What `--require` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RequiredCheck {
    /// All that SQLite's own check compares, and full-text indexes with their content.
    Integrity,
}

/// What is said of one file.
#[derive(Serialize)]
struct FileReport<'a> {
    #[serde(flatten)]
    report: &'a DoctorReport,
    trend: Option<HistoryTrend>,
}

pub(crate) fn run(arguments: &DoctorArgs, output: Printer) -> anyhow::Result<()> {
    if arguments.list {
        return list(output);
    }
    if let Some(code) = &arguments.explain {
        return explain(code, output);
    }
    if let Some(watch) = arguments.watch.given()? {
        return watch::run(&arguments.files, watch, output);
    }
    let mut options = options(arguments)?;
    if fleet::is_wanted(arguments) {
        return fleet::run(arguments, &options, output);
    }
    let (file, encryption) = target_file(arguments)?;
    if arguments.undo {
        return fix::undo(&file, output);
    }
    if let Some(code) = &arguments.fix {
        let report = fix::run(&file, &encryption, &options, code, arguments.dry_run, output)?;
        return verdict(status(&report, arguments));
    }
    let mut ignores = IgnoreFile::read(arguments.ignore.as_deref())?;
    options.ignore = ignores.rules_for(&file);
    let report = doctor::examine(&file, &encryption, &options)?;
    ignores.mark_used(&file, &report);
    print::report(&report, output);
    print::needless(&ignores.needless(), output);
    let history = arguments.history.as_deref();
    let trend = history.map(|folder| history::record_run(folder, &report)).transpose()?.flatten();
    if let Some(trend) = &trend {
        trend.print(output);
    }
    output.json(&FileReport { report: &report, trend })?;
    verdict(status(&report, arguments))
}

fn verdict(status: u8) -> anyhow::Result<()> {
    match status {
        0 => Ok(()),
        status => Err(NonZeroExit(status).into()),
    }
}

fn status(report: &DoctorReport, arguments: &DoctorArgs) -> u8 {
    let is_incomplete = !report.integrity.is_complete;
    exit_status(report.severity(), is_incomplete, arguments)
}

fn exit_status(gravest: Option<Severity>, is_incomplete: bool, arguments: &DoctorArgs) -> u8 {
    match (gravest, arguments.fail_on) {
        _ if is_incomplete && arguments.require.is_some() && gravest < Some(Severity::Error) => {
            STATUS_INCOMPLETE
        }
        (_, FailOn::Never) => 0,
        (Some(Severity::Error), _) => STATUS_ERROR,
        (_, FailOn::Error) => 0,
        (Some(Severity::Warning), _) => STATUS_WARNING,
        _ if is_incomplete => STATUS_INCOMPLETE,
        _ => 0,
    }
}

fn options(arguments: &DoctorArgs) -> anyhow::Result<ExamineOptions> {
    let budget = Duration::try_from_secs_f64(arguments.budget);
    let budget = budget.ok().filter(|budget| !budget.is_zero());
    let budget = budget.context("--budget takes a number of seconds above 0")?;
    let place = |name| std::env::var_os(name).map(PathBuf::from);
    let workload = load::read(&arguments.queries)?;
    let (sqlite_tmpdir, tmpdir) = (place("SQLITE_TMPDIR"), place("TMPDIR"));
    let places = TempDirVariables { sqlite_tmpdir, tmpdir, is_told: false };
    let settings = settings::from_args(arguments)?;
    let queries = arguments.query.clone();
    Ok(ExamineOptions {
        time_limit: budget,
        queries,
        workload,
        ignore: Vec::new(),
        temp_dirs: places,
        settings,
    })
}

/// The file, and how it opens: as the flags say, or as an account's vault.
fn target_file(arguments: &DoctorArgs) -> anyhow::Result<(PathBuf, FileEncryption)> {
    let Some(login) = &arguments.login else {
        let file = arguments.files.first().cloned().context("a file or --login")?;
        let encryption = arguments.key.encryption(&file)?;
        return Ok((file, encryption));
    };
    let data_dir = DataDir::open(&arguments.place)?;
    let unlocked = data_dir.unlock(login, &arguments.password)?;
    let path = data_dir.vault_path(&unlocked.vault)?;
    Ok((path, FileEncryption::Key { key: unlocked.key.clone(), cipher: None }))
}

fn list(output: Printer) -> anyhow::Result<()> {
    for CatalogueEntry { code, severity, title, .. } in doctor::catalogue() {
        output.line(format_args!("{severity:8} {code:28} {title}"));
    }
    output.json(&doctor::catalogue())
}

fn explain(code: &str, output: Printer) -> anyhow::Result<()> {
    let entry = doctor::entry(code);
    let entry = entry.with_context(|| format!("no code {code:?}: `warren doctor --list`"))?;
    print::entry(entry, output);
    output.json(entry)
}
