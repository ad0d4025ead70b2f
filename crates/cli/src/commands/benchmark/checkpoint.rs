//! Implements `warren bench checkpoint`: measures the cost of checkpoints.

use bench::sqlite_bench::checkpoint::{self, CheckpointBenchPlan};
use clap::Args;
use engine::Cipher;

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Measure the cost of checkpoints: throughput, slowest commit, largest WAL.
///
/// Writes continuously with `wal_autocheckpoint` 1000, 0, 100 and 10000 and through Warren's
/// engine, each with and without a reader that keeps its snapshot open. Saves
/// `warren-checkpoint.json` and `warren-checkpoint.html` (with charts).
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value("8")),
    mut_arg("seconds", |arg| arg.default_value("3")),
    after_help = "Examples:\n  warren bench checkpoint --work-dir /mnt/disk\n  \
                  warren bench checkpoint --batch 1 --seconds 10 --minutes 30"
)]
pub(crate) struct BenchCheckpointArgs {
    /// Rows in the table.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1_000..))]
    rows: i64,
    /// Transactions per commit, and concurrent callers of the engine.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    batch: usize,
    /// Encrypt the table with this cipher: chacha20, aes256cbc, aegis, sqlcipher or ascon128.
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
    print_and_save(report, &arguments.method.places.report_dir, output)
}
