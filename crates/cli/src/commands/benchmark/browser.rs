//! `warren bench browser`.

use bench::sqlite_bench::browser::{self, BrowserBenchPart, BrowserBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{CompetitorArgs, print_and_save};
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Items in a browser: Warren beside sqlite-wasm, and beside the native replica.
///
/// Queries, updates and inserts of to-do items, in a worker of a headless Chromium and from a tab,
/// with the same settings on the same file, tracked for the sync and not. Saves the results as
/// `warren-browser.json` and, with charts, as `warren-browser.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench browser --setup\n  warren bench browser --minutes 15\n  \
                  warren bench browser --only wal --seconds 0.2 --rounds-min 20\n\n\
                  `cargo xtask web` builds what is measured of Warren."
)]
pub(crate) struct BenchBrowserArgs {
    /// Install sqlite-wasm and what drives Chromium from npm's registry, and say which libraries
    /// there are; measure nothing. Needs a Chromium.
    #[arg(long)]
    setup: bool,
    /// Items in the file.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(10..))]
    rows: i64,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<BrowserPartArg>,
    #[command(flatten)]
    rivals: CompetitorArgs,
    #[command(flatten)]
    method: MeasureArgs,
}

/// `BrowserBenchPart`, as the command line names it.
#[derive(Clone, Copy)]
struct BrowserPartArg(BrowserBenchPart);

impl ValueEnum for BrowserPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(BrowserBenchPart::Wal),
            Self(BrowserBenchPart::Rollback),
            Self(BrowserBenchPart::Tab),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            BrowserBenchPart::Wal => {
                ("wal", "in a worker; a WAL that no commit flushes, Warren's default")
            }
            BrowserBenchPart::Rollback => {
                ("rollback", "in a worker; each commit flushes, sqlite-wasm's default")
            }
            BrowserBenchPart::Tab => ("tab", "what a page waits for"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

pub(crate) fn run(arguments: BenchBrowserArgs, output: Printer) -> anyhow::Result<()> {
    let progress = output.progress();
    if arguments.setup {
        let drivers = browser::setup(&arguments.rivals.rivals, &progress);
        output.text(format_args!("{drivers}"));
        return output.json(&drivers);
    }
    let plan = BrowserBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        only: arguments.only.iter().map(|part| part.0).collect(),
        competitors: arguments.rivals.rivals,
    };
    let report = browser::run(&plan, &progress)?;
    print_and_save(&report, &arguments.method.places.report, output)
}
