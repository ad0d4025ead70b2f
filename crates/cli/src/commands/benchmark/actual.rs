//! Implements `warren bench actual`: compares Warren with Actual Budget's sync server.

use std::time::Duration;

use anyhow::Context;
use bench::BenchOutput;
use bench::actual::{ActualBenchPart, ActualBenchPlan, setup};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, CompetitorArgs, command_line, print_and_save};
use crate::output::Printer;

/// Compare Warren with Actual Budget's sync server.
///
/// Measures imports in one request and in pages, small and empty syncs, downloads, and memory: the
/// same requests to both servers, over loopback, in random order, each on fresh files. Saves
/// `warren-actual.json` and `warren-actual.html` (with charts), and reports which goals are met.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren bench actual --setup\n  warren bench actual\n  \
                  warren bench actual --only small,empty --users 1,8,32 --seconds 3\n  \
                  warren bench actual --only bulk --messages 40000 --rounds 3")]
pub(crate) struct BenchActualArgs {
    /// Install the Actual server from npm, report whether it works, and exit.
    #[arg(long)]
    setup: bool,
    /// Messages per import, one table per count. The Actual server accepts up to about 150,000 per
    /// request.
    #[arg(long, default_values_t = [4_000, 40_000, 100_000], value_delimiter = ',', value_name = "COUNTS")]
    messages: Vec<usize>,
    /// Messages per page of an import.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    page_messages: usize,
    /// Users that make small syncs concurrently, one table per count.
    #[arg(long, default_values_t = [1, 8], value_delimiter = ',', value_name = "COUNTS")]
    users: Vec<usize>,
    /// Duration of each benchmark in each round. A sync in progress is completed.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds per benchmark, each in random order on a fresh server. A significant result needs at
    /// least seven.
    #[arg(long, default_value_t = 7, value_name = "COUNT")]
    rounds: usize,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<ActualPartArg>,
    #[command(flatten)]
    competitors: CompetitorArgs,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// A value of `--only`: an `ActualBenchPart`.
#[derive(Clone, Copy)]
struct ActualPartArg(ActualBenchPart);

impl ValueEnum for ActualPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(ActualBenchPart::Bulk),
            Self(ActualBenchPart::Pages),
            Self(ActualBenchPart::Small),
            Self(ActualBenchPart::Empty),
            Self(ActualBenchPart::Download),
            Self(ActualBenchPart::Memory),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            ActualBenchPart::Bulk => ("bulk", "imports in one request"),
            ActualBenchPart::Pages => ("pages", "imports in pages"),
            ActualBenchPart::Small => ("small", "syncs of one or ten transactions"),
            ActualBenchPart::Empty => {
                ("empty", "syncs without changes, of a small and of a two-year budget")
            }
            ActualBenchPart::Download => ("download", "first download, up to 40,000 messages"),
            ActualBenchPart::Memory => ("memory", "memory of one server under all workloads"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

pub(crate) fn run(arguments: BenchActualArgs, output: Printer) -> anyhow::Result<()> {
    let progress = output.progress();
    if arguments.setup {
        let installed = setup(&arguments.competitors.folder, &progress);
        output.text(format_args!("{installed}"));
        return output.json(&BenchOutput::Server(installed));
    }
    let plan = ActualBenchPlan {
        messages: arguments.messages,
        page: arguments.page_messages,
        users: arguments.users,
        duration: Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        folder: arguments.places.work_dir,
        competitors: arguments.competitors.folder,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::actual::run(&plan, &progress)?;
    print_and_save(report, &arguments.places.report_dir, output)
}
