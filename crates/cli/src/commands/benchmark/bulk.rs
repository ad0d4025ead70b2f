//! Implements `warren bench bulk`: measures bulk storage of messages.

use std::time::Duration;

use anyhow::Context;
use bench::bulk::{BulkBenchPart, BulkBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, command_line, print_and_save};
use crate::output::Printer;

/// Measure bulk storage of messages against a bare insert loop.
///
/// Stores the messages of one user in pages: over HTTP to this binary's server, compared with
/// direct SQLite calls; and in PostgreSQL with the published methods at several network latencies.
/// Saves `warren-bulk.json` and `warren-bulk.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench bulk\n  warren bench bulk --only local --messages 169000 --page-messages 10000 --rounds 7\n  warren bench bulk --only postgres --messages 4000,40000 --latency-ms 0,1,5 --rounds 3"
)]
pub(crate) struct BenchBulkArgs {
    /// Messages to store, one table per count. The largest default is the number of messages that
    /// one user of a budget app produced in a day.
    #[arg(long, value_delimiter = ',', default_value = "4000,40000,169000", value_name = "COUNTS")]
    messages: Vec<usize>,
    /// Messages per page; one page is one request and one transaction.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    page_messages: usize,
    /// Size of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content_bytes: usize,
    /// Rounds per benchmark, each in random order into fresh files.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<BulkPartArg>,
    /// Round-trip times to the database, one table per value.
    #[arg(long, value_delimiter = ',', default_value = "0,1,5", value_name = "MILLISECONDS")]
    latency_ms: Vec<u64>,
    /// Skip benchmarks that would take longer than this, and list them.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    case_time_limit: u64,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// A value of `--only`: a `BulkBenchPart`.
#[derive(Clone, Copy)]
struct BulkPartArg(BulkBenchPart);

impl ValueEnum for BulkPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(BulkBenchPart::Local), Self(BulkBenchPart::Postgres)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            BulkBenchPart::Local => {
                PossibleValue::new("local").help("SQLite: bare loop and Warren")
            }
            BulkBenchPart::Postgres => PossibleValue::new("postgres")
                .help("published methods, on the PostgreSQL of the distribution"),
        })
    }
}

pub(crate) fn run(arguments: BenchBulkArgs, output: Printer) -> anyhow::Result<()> {
    let plan = BulkBenchPlan {
        counts: arguments.messages,
        page: arguments.page_messages,
        content_bytes: arguments.content_bytes,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        latencies_ms: arguments.latency_ms,
        case_max: Duration::from_secs(arguments.case_time_limit),
        folder: arguments.places.work_dir,
        program: std::env::current_exe().context("this program")?,
        command: command_line(),
    };
    let report = bench::bulk::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.places.report_dir, output)
}
