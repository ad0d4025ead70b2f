//! Implements `warren doctor`: finds faults and slow queries of SQLite files, and suggests fixes.

mod baseline;
pub(crate) mod doctor_args;
pub(crate) mod doctor_output;
mod examined_file;
mod finding_code;
mod finding_identity;
mod fix;
mod fleet;
mod fleet_report;
mod format;
mod history;
mod ignore;
mod load;
mod print;
mod settings;
mod severity_status;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use doctor::{CatalogueEntry, ExamineOptions, TempDirVariables};
use engine::FileEncryption;

use self::doctor_args::DoctorArgs;
use self::doctor_output::DoctorOutput;
use self::finding_code::finding_code;
use self::ignore::IgnoreFile;
use self::severity_status::{status, verdict};
use crate::args::data_dir::DataDir;
use crate::output::{CommandError, Printer};

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
        return fix::run(&file, &encryption, &options, code, arguments, output);
    }
    let mut ignores = IgnoreFile::read(arguments.ignore.as_deref())?;
    options.ignore = ignores.rules_for(&file);
    let mut report = doctor::examine(&file, &encryption, &options)?;
    ignores.mark_used(&file, &report);
    print::report(&report, output);
    print::needless(&ignores.needless(), output);
    if let Some(folder) = &arguments.history {
        report.trend = history::record_run(folder, &report)?;
    }
    if let Some(trend) = &report.trend {
        history::print(trend, output);
    }
    let status = status(&report, arguments);
    output.json(&DoctorOutput::Report(Box::new(report)))?;
    verdict(status)
}

fn options(arguments: &DoctorArgs) -> anyhow::Result<ExamineOptions> {
    let budget = Duration::try_from_secs_f64(arguments.time_limit);
    let budget = budget.ok().filter(|budget| !budget.is_zero());
    let message = "--time-limit must be a number of seconds above 0";
    let budget = budget.ok_or_else(|| CommandError::usage(message))?;
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

/// Returns the file and its encryption, according to the flags or for an account's vault.
fn target_file(arguments: &DoctorArgs) -> anyhow::Result<(PathBuf, FileEncryption)> {
    let Some(login) = &arguments.login else {
        let missing = || CommandError::usage("pass a file or --login");
        let file = arguments.files.first().cloned().ok_or_else(missing)?;
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
    let entries = doctor::catalogue().to_vec();
    output.json(&DoctorOutput::Catalogue(entries))
}

fn explain(code: &str, output: Printer) -> anyhow::Result<()> {
    let entry = finding_code(code)?.entry();
    print::entry(entry, output);
    output.json(&DoctorOutput::Entry(*entry))
}
