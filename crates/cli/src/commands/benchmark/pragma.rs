//! Implements `warren bench pragma`: measures the effect of SQLite settings.

use bench::BenchOutput;
use bench::sqlite_bench::pragma::{self, BenchChoice, BenchChoiceKind, PragmaBenchPlan};
use clap::Args;

use super::bench_output::{finish_in_short, print_and_save};
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Measure the effect of SQLite settings on this disk, with confidence intervals.
///
/// Compares published configurations and others with the production settings: inserts, lists,
/// reads, updates, deletes and a mix on a table of messages, and the creation of files; then the
/// same table with the body first, last, and in a separate table. Prints one line per
/// configuration. Saves `warren-pragma.json` and `warren-pragma.html` (with charts).
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value(pragma::ROUNDS_MIN)),
    mut_arg("seconds", |arg| arg.default_value("0.06")),
    after_help = "Examples:\n  warren bench pragma --work-dir /mnt/disk\n  \
                  warren bench pragma --rows 1000 --minutes 2 --all\n  \
                  warren bench pragma --only synchronous-full,synchronous-off,insert,update\n  \
                  warren bench pragma --only layouts\n  \
                  warren bench pragma --rows 1000,200000 --cipher aegis --precision 1 --minutes 60\n  \
                  warren bench pragma --list"
)]
pub(crate) struct BenchPragmaArgs {
    /// Messages in the file, one table per count. 20,000 messages of 3,500 bytes exceed every
    /// cache.
    #[arg(long, default_values_t = [1_000, 20_000], value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(i64).range(10..))]
    rows: Vec<i64>,
    /// Size of a message body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    /// Encrypt every file with this cipher: chacha20, aegis, or another that `PRAGMA cipher`
    /// accepts.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<String>,
    /// Run only these configurations, operations and parts (see --list).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Print all tables: rates, CPU time, waits, and the settings of each configuration.
    #[arg(long)]
    all: bool,
    /// List the names for --only and exit.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    method: MeasureArgs,
}

pub(crate) fn run(arguments: &BenchPragmaArgs, output: Printer) -> anyhow::Result<()> {
    if arguments.list {
        return list(output);
    }
    let plan = PragmaBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows.clone(),
        body_bytes: arguments.body_bytes,
        cipher: arguments.cipher.clone(),
        only: arguments.only.clone(),
    };
    let report = pragma::run(&plan, &output.progress())?;
    let finish = if arguments.all { print_and_save } else { finish_in_short };
    finish(report, &arguments.method.places.report_dir, output)
}

fn list(output: Printer) -> anyhow::Result<()> {
    let choices = pragma::choices();
    for (kind, title) in [
        (BenchChoiceKind::Part, "Parts"),
        (BenchChoiceKind::Configuration, "Configurations"),
        (BenchChoiceKind::Operation, "Operations"),
    ] {
        output.line(format_args!("{title}:"));
        for BenchChoice { name, description, .. } in
            choices.iter().filter(|choice| choice.kind == kind)
        {
            output.line(format_args!("  {}", format!("{name:24}{description}").trim_end()));
        }
    }
    output.json(&BenchOutput::Choices(choices))
}
