//! `warren bench checkpoint`.

use bench::sqlite_bench::checkpoint::{self, CheckpointBenchPlan};
use clap::Args;
use engine::Cipher;

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// What checkpoints cost: throughput, the slowest commit, the largest WAL.
///
/// Writes continuously with SQLite's `wal_autocheckpoint` at 1,000, 0, 100 and 10,000, and through
/// Warren's engine, each with and without a reader that holds its snapshot all the time. Saves the
/// results as `warren-checkpoint.json` and, with charts, as `warren-checkpoint.html`.
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value("8")),
    mut_arg("seconds", |arg| arg.default_value("3")),
    after_help = "Example:\n  warren bench checkpoint --folder /mnt/disk\n  \
                  warren bench checkpoint --batch 1 --seconds 10 --minutes 30"
)]
pub(crate) struct BenchCheckpointArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1_000..))]
    rows: i64,
    /// Transactions of a commit, and callers of the engine that wait at a time.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    batch: usize,
    /// Encrypt the table: `chacha20`, `aes256cbc`, `aegis`, `sqlcipher` or `ascon128`.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
    #[command(flatten)]
    method: MeasureArgs,
}

pub(crate) fn run(arguments: &BenchCheckpointArgs, output: Printer) -> anyhow::Result<()> {
    let plan = CheckpointBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        batch: arguments.batch,
        cipher: arguments.cipher,
    };
    let report = checkpoint::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.method.places.report, output)
}
