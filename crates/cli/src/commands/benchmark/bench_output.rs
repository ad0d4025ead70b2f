//! Saves and prints the reports of benchmarks, and defines the arguments that all benchmarks share.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bench::{BenchOutput, BenchReport};
use clap::Args;

use crate::output::Printer;

/// Directories for benchmark files and reports.
#[derive(Args)]
pub(crate) struct BenchOutputArgs {
    /// Directory for benchmark files; its disk is the one that is measured [default: TMPDIR, or
    /// /var/tmp]
    #[arg(long, default_value_os_t = temporary_folder(), hide_default_value = true)]
    #[arg(value_name = "DIR")]
    pub(crate) work_dir: PathBuf,
    /// Directory for the reports.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) report_dir: PathBuf,
}

/// Returns `TMPDIR`, or the directory for temporary files that survive a restart (FHS 3.0, 5.15):
/// it is on a disk, and `/tmp` often is not.
fn temporary_folder() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Directory of the competitors' drivers.
#[derive(Args)]
pub(crate) struct CompetitorArgs {
    /// Directory with the drivers of the competitors (`bench/competitors` in Warren's repository).
    #[arg(long = "competitors", default_value = "bench/competitors", value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Returns the command line, for the report.
pub(crate) fn command_line() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!("warren {}", arguments.join(" "))
}

/// Prints the report, and saves it in both formats.
pub(crate) fn print_and_save(
    report: BenchReport,
    folder: &Path,
    output: Printer,
) -> anyhow::Result<()> {
    output.text(format_args!("{report}"));
    let saved = save_all(&report, folder)?;
    output.line(format_args!(""));
    output.line(format_args!("{saved}"));
    output.json(&BenchOutput::Report(Box::new(report)))
}

/// Saves the report like [`print_and_save`], but prints only its short form, if it has one.
pub(crate) fn finish_in_short(
    report: BenchReport,
    folder: &Path,
    output: Printer,
) -> anyhow::Result<()> {
    let Some(look) = report.in_one_look() else { return print_and_save(report, folder, output) };
    output.text(format_args!("{look}"));
    let saved = save_all(&report, folder)?;
    let tables = doctor::counted(report.tables.len() as u64, "table", "tables");
    let notes = match report.notes.len() {
        0 => String::new(),
        1 => " and a note".to_owned(),
        count => format!(" and {count} notes"),
    };
    output.line(format_args!("{saved}; --all prints {tables}{notes}"));
    output.json(&BenchOutput::Report(Box::new(report)))
}

/// Saves the report in both formats, and returns a text with the paths.
fn save_all(report: &BenchReport, folder: &Path) -> anyhow::Result<String> {
    let name = |ending| format!("warren-{}.{ending}", report.benchmark);
    save(folder, &name("json"), &serde_json::to_string_pretty(report)?)?;
    save(folder, &name("html"), &report.html())?;
    let (json, html) = (name("json"), name("html"));
    Ok(format!("saved as {json} and {html} in {}", folder.display()))
}

fn save(folder: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
}
