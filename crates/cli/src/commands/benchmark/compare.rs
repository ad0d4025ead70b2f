//! `warren bench compare`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bench::BenchReport;
use clap::Args;

use crate::output::Printer;

/// Two reports beside each other: what became faster, what slower.
///
/// Takes the JSON files that the benchmarks save. Rates are compared if both were made on the same
/// kind of machine; multiples of the baseline in any case.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench compare before/warren-pragma.json warren-pragma.json"
)]
pub(crate) struct BenchCompareArgs {
    /// The report to compare with.
    #[arg(value_name = "A.json")]
    a: PathBuf,
    /// The newer report.
    #[arg(value_name = "B.json")]
    b: PathBuf,
}

pub(crate) fn run(arguments: &BenchCompareArgs, output: Printer) -> anyhow::Result<()> {
    let comparison = bench::compare(&read(&arguments.a)?, &read(&arguments.b)?)?;
    output.text(format_args!("{comparison}"));
    output.json(&comparison)
}

fn read(path: &Path) -> anyhow::Result<BenchReport> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is no report of warren bench", path.display()))
}
