//! `warren bench bulk`.

use std::time::Duration;

use anyhow::Context;
use bench::bulk::{BulkBenchPart, BulkBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, command_line, print_and_save};
use crate::output::Printer;

/// Messages a second stored in bulk, beside the bare loop that inserts the same rows.
///
/// The messages of one user, in pages: over HTTP to the server of this binary, beside SQLite called
/// directly; and on PostgreSQL the published ways, at several distances from the database. Prints
/// the tables, and saves them as `warren-bulk.json` and, with charts, as `warren-bulk.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench bulk\n  warren bench bulk --only local --counts 169000 --page 10000 --rounds 7\n  warren bench bulk --only postgres --counts 4000,40000 --latency 0,1,5 --rounds 3"
)]
pub(crate) struct BenchBulkArgs {
    /// Messages, a table for each count: the largest is what one user of a budget app made in a
    /// day.
    #[arg(long, value_delimiter = ',', default_value = "4000,40000,169000", value_name = "COUNTS")]
    counts: Vec<usize>,
    /// Messages of one page: a request, and a transaction.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    page: usize,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content: usize,
    /// Rounds of each case, each round in a random order and each into fresh files.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<BulkPartArg>,
    /// Milliseconds to the database and back, tables for each.
    #[arg(long, value_delimiter = ',', default_value = "0,1,5", value_name = "MILLISECONDS")]
    latency: Vec<u64>,
    /// Leave out what would take longer, and say so.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    case_seconds_max: u64,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// `BulkBenchPart`, as the command line names it.
#[derive(Clone, Copy)]
struct BulkPartArg(BulkBenchPart);

impl ValueEnum for BulkPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(BulkBenchPart::Local), Self(BulkBenchPart::Postgres)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            BulkBenchPart::Local => {
                PossibleValue::new("local").help("SQLite: the bare loop, and Warren")
            }
            BulkBenchPart::Postgres => PossibleValue::new("postgres")
                .help("the published ways, on a server from the distribution's package"),
        })
    }
}

pub(crate) fn run(arguments: BenchBulkArgs, output: Printer) -> anyhow::Result<()> {
    let plan = BulkBenchPlan {
        counts: arguments.counts,
        page: arguments.page,
        content_bytes: arguments.content,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        latencies_ms: arguments.latency,
        case_max: Duration::from_secs(arguments.case_seconds_max),
        folder: arguments.places.folder,
        program: std::env::current_exe().context("this program")?,
        command: command_line(),
    };
    let report = bench::bulk::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.places.report, output)
}
