//! `warren bench actual`.

use std::time::Duration;

use anyhow::Context;
use bench::actual::{ActualBenchPart, ActualBenchPlan, setup};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, CompetitorArgs, command_line, print_and_save};
use crate::output::Printer;

/// Actual Budget's published sync server beside this one, asked as its apps ask.
///
/// Imports in one request and in pages, small and empty syncs, downloads and memory: the same
/// requests to both servers, on loopback, in random order, each on fresh files. Prints the tables
/// and whether Warren's aims are met, and saves them as `warren-actual.json` and, with charts, as
/// `warren-actual.html`.
#[derive(Args)]
#[command(after_help = "Example:\n  warren bench actual --setup\n  warren bench actual\n  \
                  warren bench actual --only small,empty --users 1,8,32 --seconds 3\n  \
                  warren bench actual --only bulk --messages 40000 --rounds 3")]
pub(crate) struct BenchActualArgs {
    /// Install the published server from npm's registry, and say whether it is there; measure
    /// nothing.
    #[arg(long)]
    setup: bool,
    /// Messages of an import, a table for each size. The published server takes up to some 150,000
    /// in a request.
    #[arg(long, default_values_t = [4_000, 40_000, 100_000], value_delimiter = ',', value_name = "COUNTS")]
    messages: Vec<usize>,
    /// Messages of a page of an import.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    page: usize,
    /// How many users make small syncs at the same time, tables for each count.
    #[arg(long, default_values_t = [1, 8], value_delimiter = ',', value_name = "COUNTS")]
    users: Vec<usize>,
    /// How long each case works in each round. It ends what it has begun.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds of each case, each round in a random order and each on a fresh server. A verdict
    /// needs seven.
    #[arg(long, default_value_t = 7, value_name = "COUNT")]
    rounds: usize,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<ActualPartArg>,
    #[command(flatten)]
    rivals: CompetitorArgs,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// `ActualBenchPart`, as the command line names it.
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
            ActualBenchPart::Bulk => ("bulk", "imports, each in one request"),
            ActualBenchPart::Pages => ("pages", "imports in pages"),
            ActualBenchPart::Small => ("small", "a transaction, or ten, in a request"),
            ActualBenchPart::Empty => {
                ("empty", "nothing new, of a small budget and of one of two years")
            }
            ActualBenchPart::Download => {
                ("download", "a new device gets everything, up to 40,000 messages")
            }
            ActualBenchPart::Memory => ("memory", "one server that does all of it, and its memory"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

pub(crate) fn run(arguments: BenchActualArgs, output: Printer) -> anyhow::Result<()> {
    let progress = output.progress();
    if arguments.setup {
        let installed = setup(&arguments.rivals.rivals, &progress);
        output.text(format_args!("{installed}"));
        return output.json(&installed);
    }
    let plan = ActualBenchPlan {
        messages: arguments.messages,
        page: arguments.page,
        users: arguments.users,
        duration: Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        folder: arguments.places.folder,
        competitors: arguments.rivals.rivals,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::actual::run(&plan, &progress)?;
    print_and_save(&report, &arguments.places.report, output)
}
