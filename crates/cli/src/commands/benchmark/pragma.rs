//! `warren bench pragma`.

use bench::sqlite_bench::pragma::{self, BenchChoice, BenchChoiceKind, PragmaBenchPlan};
use clap::Args;

use super::bench_output::{finish_in_short, print_and_save};
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// What SQLite's settings do on this disk, in one table with verdicts.
///
/// Compares the published configurations and others with the production set, on this disk: inserts,
/// lists, reads, updates, deletes and a mix, over a table of messages, and the making of new files;
/// then the same table with the body first, last, and in a table of its own. Prints one line for
/// each configuration. Saves all results as `warren-pragma.json` and, with charts, as
/// `warren-pragma.html`.
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value(pragma::ROUNDS_MIN)),
    mut_arg("seconds", |arg| arg.default_value("0.06")),
    after_help = "Example:\n  warren bench pragma --folder /mnt/disk\n  \
                  warren bench pragma --rows 1000 --minutes 2 --all\n  \
                  warren bench pragma --only synchronous-full,synchronous-off,insert,update\n  \
                  warren bench pragma --only layouts\n  \
                  warren bench pragma --rows 1000,200000 --cipher aegis --precision 1 --minutes 60\n  \
                  warren bench pragma --list"
)]
pub(crate) struct BenchPragmaArgs {
    /// Messages in the file, for each size. 20,000 of 3,500 bytes are larger than every cache.
    #[arg(long, default_values_t = [1_000, 20_000], value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(i64).range(10..))]
    rows: Vec<i64>,
    /// Bytes of a message's body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    /// Encrypt every file: `chacha20`, `aegis`, or another that `PRAGMA cipher` takes.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<String>,
    /// Measure only these: configurations, operations and parts by name; `--list` has all.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Print every table, with rates, processor time and waits, and what each configuration sets.
    #[arg(long)]
    all: bool,
    /// List the names that `--only` takes, and measure nothing.
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
    finish(&report, &arguments.method.places.report, output)
}

fn list(output: Printer) -> anyhow::Result<()> {
    let choices = pragma::choices();
    for (kind, title) in [
        (BenchChoiceKind::Part, "Parts"),
        (BenchChoiceKind::Configuration, "Configurations"),
        (BenchChoiceKind::Operation, "Operations"),
    ] {
        output.line(format_args!("{title}:"));
        for BenchChoice { name, about, .. } in choices.iter().filter(|choice| choice.kind == kind) {
            output.line(format_args!("  {}", format!("{name:24}{about}").trim_end()));
        }
    }
    output.json(&choices)
}
