//! `warren bench reconcile`.

use bench::reconcile::ReconcileBenchPlan;
use clap::Args;

use super::bench_output::{BenchOutputArgs, command_line, print_and_save};
use crate::output::Printer;

/// Requests, bytes and time until two sets that differ know where.
///
/// A device and a server hold the same messages but for some; beside it, the whole vault is
/// fetched. Prints the tables, and saves them as `warren-reconcile.json` and, with charts, as
/// `warren-reconcile.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench reconcile\n  warren bench reconcile --messages 169000 --differences 1,1000 --rounds 5"
)]
pub(crate) struct BenchReconcileArgs {
    /// Messages that both sides hold.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Messages that only one side holds, a row for each count.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,1,10,1000,100000",
        value_name = "COUNTS"
    )]
    differences: Vec<u64>,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content: usize,
    /// Rounds of each case, each round in a random order.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    #[command(flatten)]
    places: BenchOutputArgs,
}

pub(crate) fn run(arguments: BenchReconcileArgs, output: Printer) -> anyhow::Result<()> {
    let most = arguments.differences.iter().max().copied().unwrap_or(0);
    anyhow::ensure!(most <= arguments.messages, "more differences than messages");
    let plan = ReconcileBenchPlan {
        messages: arguments.messages,
        differences: arguments.differences,
        content_bytes: arguments.content,
        rounds: arguments.rounds,
        folder: arguments.places.folder,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::reconcile::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.places.report, output)
}
