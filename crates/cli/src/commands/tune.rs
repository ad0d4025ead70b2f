//! `warren tune`: which settings help a file, measured here.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bench::tune::emit::{FRAMEWORKS, PragmaRecipe, TargetFramework};
use bench::tune::{TunePlan, TuneSource, TuneWorkload};
use clap::Args;
use clap::builder::PossibleValuesParser;
use engine::Profile;
use serde_json::json;

use super::benchmark::bench_output::command_line;
use crate::args::key_args::CipherKeyArgs;
use crate::output::Printer;
use crate::signals;

/// Find the settings that help a SQLite file, or a kind of load, on this machine and this disk.
///
/// Measures on a copy, in rounds of random order, and recommends what is faster beyond the noise
/// and no less durable than what is there. The file itself is only read.
#[derive(Args)]
#[command(after_help = "Example:\n  warren tune app.db --minutes 3\n  \
                        warren tune app.db --workload read --emit django\n  \
                        warren tune --workload mail --folder /mnt/disk\n  \
                        warren tune --profile server --emit go\n  \
                        warren tune --emit django --check")]
pub(crate) struct TuneArgs {
    /// The file whose schema and content shape the load.
    file: Option<PathBuf>,
    /// What is done: mostly reads, mostly writes, both; a mailbox, pages of changes.
    #[arg(long, default_value = "mixed", value_parser = workloads())]
    workload: String,
    /// How long to measure.
    #[arg(long, default_value_t = 5.0, value_name = "MINUTES")]
    minutes: f64,
    /// Recommend also what may lose commits, or corrupt the file, when the power fails.
    #[arg(long)]
    allow_unsafe: bool,
    /// What your program sets today, if that is not SQLite's default: journal_mode=WAL,cache_size=-8000.
    #[arg(long, value_name = "PRAGMAS", value_delimiter = ',', value_parser = parse_pragma)]
    today: Vec<(String, String)>,
    /// Print the settings as code for a framework, and nothing else.
    #[arg(long, value_name = "FRAMEWORK", value_parser = frameworks())]
    emit: Option<String>,
    /// With --emit: print code that prints what a live connection has, for `warren doctor --settings`.
    #[arg(long, requires = "emit", conflicts_with_all = ["file", "workload", "minutes", "allow_unsafe", "today", "folder", "profile"])]
    check: bool,
    /// Measure nothing: take a named profile.
    #[arg(long, value_name = "NAME", requires = "emit", conflicts_with_all = ["file", "workload", "minutes", "allow_unsafe", "today", "folder"], value_parser = profiles())]
    profile: Option<String>,
    /// Where the copy goes: the disk that is measured.
    #[arg(long, default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    key: CipherKeyArgs,
}

pub(crate) fn run(arguments: &TuneArgs, output: Printer) -> anyhow::Result<()> {
    if arguments.check {
        let framework = framework(arguments)?;
        let code = framework.check();
        output.text(format_args!("{}", code.trim_end()));
        return output.json(&json!({"framework": framework.name, "code": code}));
    }
    if let Some(name) = &arguments.profile {
        let profile = Profile::by_name(name).context("no such profile")?;
        return emit(arguments, &PragmaRecipe::from_profile(profile), output);
    }
    signals::remove_temporary_files_first()?;
    let tuning = bench::tune::run(&plan(arguments)?, &output.progress())?;
    if arguments.emit.is_some() {
        return emit(arguments, &tuning.recipe(), output);
    }
    output.text(format_args!("{tuning}"));
    output.json(&tuning)
}

fn emit(arguments: &TuneArgs, recipe: &PragmaRecipe, output: Printer) -> anyhow::Result<()> {
    let framework = framework(arguments)?;
    let code = framework.write(recipe);
    output.text(format_args!("{}", code.trim_end()));
    output.json(&json!({
        "framework": framework.name,
        "code": code,
        "settings": recipe.settings,
        "once": recipe.once,
    }))
}

fn framework(arguments: &TuneArgs) -> anyhow::Result<&'static TargetFramework> {
    let name = arguments.emit.as_deref().unwrap_or_default();
    TargetFramework::by_name(name).context("no such framework")
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
        "--workload {} makes a file of its own: with a file, it is read, write or mixed",
        arguments.workload
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
        today: arguments.today.clone(),
        folder: arguments.folder.clone(),
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
    PossibleValuesParser::new(Profile::ALL.iter().map(|profile| profile.name))
}

fn parse_pragma(text: &str) -> anyhow::Result<(String, String)> {
    bench::tune::parse_current_pragma(text)
}
