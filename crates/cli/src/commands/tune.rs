//! Implements `warren tune`: measures which settings speed up a file on this machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bench::tune::emit::{FRAMEWORKS, PragmaRecipe, TargetFramework};
use bench::tune::{CheckSnippet, SettingsSnippet, TuneOutput, TunePlan, TuneSource, TuneWorkload};
use clap::Args;
use clap::builder::PossibleValuesParser;
use engine::Profile;

use super::benchmark::bench_output::command_line;
use crate::args::key_args::CipherKeyArgs;
use crate::output::{CommandError, Printer};
use crate::signals;

/// Find the fastest settings for a SQLite file or workload on this machine.
///
/// Runs the workload on a copy of the file, in rounds of random order. Recommends only settings
/// that are significantly faster and at least as durable as the current ones. The original file is
/// only read.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren tune app.db --minutes 3\n  \
                        warren tune app.db --workload read --emit django\n  \
                        warren tune --workload mail --work-dir /mnt/disk\n  \
                        warren tune --profile server --emit go\n  \
                        warren tune --emit django --check")]
pub(crate) struct TuneArgs {
    /// SQLite file whose schema and contents define the workload. Default: a generated file.
    file: Option<PathBuf>,
    /// Workload: read, write, mixed, mail (a mailbox), or sync (pages of changes).
    #[arg(long, default_value = "mixed", value_parser = workloads())]
    workload: String,
    /// Time to spend on measuring.
    #[arg(long, default_value_t = 5.0, value_name = "MINUTES")]
    minutes: f64,
    /// Also recommend settings that may lose commits or corrupt the file on power loss.
    #[arg(long)]
    allow_unsafe: bool,
    /// PRAGMAs that your program sets today, if they differ from SQLite's defaults, such as
    /// journal_mode=WAL,cache_size=-8000.
    #[arg(long, value_name = "PRAGMAS", value_delimiter = ',', value_parser = parse_pragma)]
    current_pragmas: Vec<(String, String)>,
    /// Print only the settings, as code for this framework.
    #[arg(long, value_name = "FRAMEWORK", value_parser = frameworks())]
    emit: Option<String>,
    /// With --emit: print code that reports the settings of a live connection, for
    /// `warren doctor --settings`.
    #[arg(long, requires = "emit", conflicts_with_all = ["file", "workload", "minutes", "allow_unsafe", "current_pragmas", "work_dir", "profile"])]
    check: bool,
    /// With --emit: use this named profile instead of measuring.
    #[arg(long, value_name = "NAME", requires = "emit", conflicts_with_all = ["file", "workload", "minutes", "allow_unsafe", "current_pragmas", "work_dir"], value_parser = profiles())]
    profile: Option<String>,
    /// Directory for the copy; its disk is the one that is measured.
    #[arg(long, default_value = ".", value_name = "DIR")]
    work_dir: PathBuf,
    #[command(flatten)]
    key: CipherKeyArgs,
}

pub(crate) fn run(arguments: &TuneArgs, output: Printer) -> anyhow::Result<()> {
    if arguments.check {
        let snippet = CheckSnippet::new(framework(arguments)?);
        output.text(format_args!("{}", snippet.code.trim_end()));
        return output.json(&TuneOutput::Check(snippet));
    }
    if let Some(name) = &arguments.profile {
        let profile = Profile::by_name(name)
            .ok_or_else(|| CommandError::usage(format!("unknown profile: {name}")))?;
        return emit(arguments, &PragmaRecipe::from_profile(profile), output);
    }
    signals::remove_temporary_files_first()?;
    let tuning = bench::tune::run(&plan(arguments)?, &output.progress())?;
    if arguments.emit.is_some() {
        return emit(arguments, &tuning.recipe(), output);
    }
    output.text(format_args!("{tuning}"));
    output.json(&TuneOutput::Report(Box::new(tuning)))
}

fn emit(arguments: &TuneArgs, recipe: &PragmaRecipe, output: Printer) -> anyhow::Result<()> {
    let snippet = SettingsSnippet::new(framework(arguments)?, recipe);
    output.text(format_args!("{}", snippet.code.trim_end()));
    output.json(&TuneOutput::Settings(snippet))
}

fn framework(arguments: &TuneArgs) -> anyhow::Result<&'static TargetFramework> {
    let name = arguments.emit.as_deref().unwrap_or_default();
    TargetFramework::by_name(name)
        .ok_or_else(|| CommandError::usage(format!("unknown framework: {name}")).into())
}

fn plan(arguments: &TuneArgs) -> anyhow::Result<TunePlan> {
    let workload = match arguments.workload.as_str() {
        "read" => TuneWorkload::Read,
        "write" => TuneWorkload::Write,
        "mail" => TuneWorkload::Mail,
        "sync" => TuneWorkload::Sync,
        _ => TuneWorkload::Mixed,
    };
    let is_of_file = !matches!(workload, TuneWorkload::Mail | TuneWorkload::Sync);
    anyhow::ensure!(
        is_of_file || arguments.file.is_none(),
        CommandError::usage(format!(
            "--workload {} generates its own file; for an existing file, use read, write or mixed",
            arguments.workload
        ))
    );
    let source = arguments.file.clone().map(|path| {
        let encryption = arguments.key.encryption(&path)?;
        anyhow::Ok(TuneSource { path, encryption })
    });
    let source = source.transpose()?;
    Ok(TunePlan {
        source,
        workload,
        time: Duration::try_from_secs_f64(arguments.minutes * 60.0).context("--minutes")?,
        allow_unsafe: arguments.allow_unsafe,
        today: arguments.current_pragmas.clone(),
        folder: arguments.work_dir.clone(),
        command: command_line(),
    })
}

fn workloads() -> PossibleValuesParser {
    PossibleValuesParser::new(["read", "write", "mixed", "mail", "sync"])
}

fn frameworks() -> PossibleValuesParser {
    PossibleValuesParser::new(FRAMEWORKS.iter().map(|framework| framework.name))
}

fn profiles() -> PossibleValuesParser {
    PossibleValuesParser::new(Profile::all().map(|profile| profile.name))
}

fn parse_pragma(text: &str) -> anyhow::Result<(String, String)> {
    bench::tune::parse_current_pragma(text)
}
