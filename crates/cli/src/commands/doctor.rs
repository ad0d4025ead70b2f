//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.

mod baseline;
pub(crate) mod doctor_args;
mod examined_file;
mod exit_status;
mod finding_identity;
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
use doctor::{CatalogueEntry, DoctorReport, ExamineOptions, TempDirVariables};
use engine::FileEncryption;
use serde::Serialize;

use self::doctor_args::DoctorArgs;
use self::exit_status::{status, verdict};
use self::history::HistoryTrend;
use self::ignore::IgnoreFile;
use crate::args::data_dir::DataDir;
use crate::output::Printer;

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

fn options(arguments: &DoctorArgs) -> anyhow::Result<ExamineOptions> {
    let budget = Duration::try_from_secs_f64(arguments.time_limit);
    let budget = budget.ok().filter(|budget| !budget.is_zero());
    let budget = budget.context("--time-limit takes a number of seconds above 0")?;
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
