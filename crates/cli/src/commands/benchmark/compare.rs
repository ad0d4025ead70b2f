//! Implements `warren bench compare`: compares two benchmark reports.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bench::{BenchOutput, BenchReport};
use clap::Args;
use protocol::ErrorCode;

use crate::output::{CommandError, Printer};

/// Compare two benchmark reports.
///
/// Reads the JSON files that the benchmarks save. Absolute rates are compared only if both reports
/// come from the same kind of machine; ratios to the baseline always are.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench compare before/warren-pragma.json warren-pragma.json"
)]
pub(crate) struct BenchCompareArgs {
    /// Older report, the basis of the comparison.
    #[arg(value_name = "OLD.json")]
    old: PathBuf,
    /// Newer report to compare with the older one.
    #[arg(value_name = "NEW.json")]
    new: PathBuf,
}

pub(crate) fn run(arguments: &BenchCompareArgs, output: Printer) -> anyhow::Result<()> {
    let comparison = bench::compare(&read(&arguments.old)?, &read(&arguments.new)?)?;
    output.text(format_args!("{comparison}"));
    output.json(&BenchOutput::Comparison(Box::new(comparison)))
}

fn read(path: &Path) -> anyhow::Result<BenchReport> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let invalid = |error| {
        let path = path.display();
        let message = format!("{path} is not a benchmark report that can be compared: {error:#}");
        CommandError::new(ErrorCode::InvalidFile, message)
    };
    Ok(BenchReport::from_json(&text).map_err(invalid)?)
}
