//! `warren bench`: measures, side by side, on this machine.

use std::path::PathBuf;

use bench::sync;
use clap::{Args, Subcommand};

use crate::output::Output;

/// Measure Warren beside the bare cost of the work, in one run.
#[derive(Subcommand)]
pub(crate) enum Command {
    Sync(Sync),
}

/// Messages a second stored over HTTP, beside the bare loop that inserts the same rows.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench sync\n  warren bench sync --messages 169000 --page 10000 --rounds 7 --json"
)]
pub(crate) struct Sync {
    /// Messages of one round: the default is what one user of a budget app made in a day.
    #[arg(long, default_value_t = 169_000, value_name = "COUNT")]
    messages: usize,
    /// Messages of one page: a request, and a transaction.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    page: usize,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content: usize,
    /// Rounds of each candidate, in alternating order.
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    rounds: usize,
    /// Where the files go: the disk that is measured.
    #[arg(long, default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    let Command::Sync(arguments) = command;
    let plan = sync::Plan {
        messages: arguments.messages,
        page: arguments.page,
        content_bytes: arguments.content,
        rounds: arguments.rounds,
        folder: arguments.folder,
        program: std::env::current_exe()?,
    };
    let report = sync::run(&plan, &output.progress())?;
    output.line(format_args!("{report}"));
    output.value(&report)
}
