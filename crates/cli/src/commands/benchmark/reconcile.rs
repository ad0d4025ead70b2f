//! Implements `warren bench reconcile`: measures how fast two message sets are reconciled.

use bench::reconcile::ReconcileBenchPlan;
use clap::Args;

use super::bench_output::{BenchOutputArgs, command_line, print_and_save};
use crate::output::{CommandError, Printer};

/// Measure how fast two differing message sets are reconciled.
///
/// Counts requests and bytes, and measures the time. A device and a server have the same messages
/// except for some; for comparison, the whole vault is downloaded. Saves `warren-reconcile.json`
/// and `warren-reconcile.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench reconcile\n  warren bench reconcile --messages 169000 --differences 1,1000 --rounds 5"
)]
pub(crate) struct BenchReconcileArgs {
    /// Messages that both sides have.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Messages that only one side has, one row per count.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,1,10,1000,100000",
        value_name = "COUNTS"
    )]
    differences: Vec<u64>,
    /// Size of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content_bytes: usize,
    /// Rounds per benchmark, each in random order.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    #[command(flatten)]
    places: BenchOutputArgs,
}

pub(crate) fn run(arguments: BenchReconcileArgs, output: Printer) -> anyhow::Result<()> {
    let most = arguments.differences.iter().max().copied().unwrap_or(0);
    let message = "--differences must not exceed --messages";
    anyhow::ensure!(most <= arguments.messages, CommandError::usage(message));
    let plan = ReconcileBenchPlan {
        messages: arguments.messages,
        differences: arguments.differences,
        content_bytes: arguments.content_bytes,
        rounds: arguments.rounds,
        folder: arguments.places.work_dir,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::reconcile::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.places.report_dir, output)
}
