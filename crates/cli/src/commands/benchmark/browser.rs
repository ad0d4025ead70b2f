//! Implements `warren bench browser`: compares Warren in a browser with sqlite-wasm and the native
//! replica.

use bench::BenchOutput;
use bench::sqlite_bench::browser::{self, BrowserBenchPart, BrowserBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{CompetitorArgs, print_and_save};
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Compare Warren in a browser with sqlite-wasm and with the native replica.
///
/// Runs queries, updates and inserts of to-do items in a headless Chromium, in a worker and from a
/// tab, with and without sync tracking, on the same file with the same settings. Saves
/// `warren-browser.json` and `warren-browser.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench browser --setup\n  warren bench browser --minutes 15\n  \
                  warren bench browser --only wal --seconds 0.2 --rounds-min 20\n\n\
                  Build the browser package first: `cargo xtask web`."
)]
pub(crate) struct BenchBrowserArgs {
    /// Install sqlite-wasm and the Chromium driver from npm, list the libraries found, and exit.
    /// Requires Chromium.
    #[arg(long)]
    setup: bool,
    /// Items in the file.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(10..))]
    rows: i64,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<BrowserPartArg>,
    #[command(flatten)]
    competitors: CompetitorArgs,
    #[command(flatten)]
    method: MeasureArgs,
}

/// A value of `--only`: a `BrowserBenchPart`.
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
            BrowserBenchPart::Wal => ("wal", "in a worker, WAL without fsync (Warren's default)"),
            BrowserBenchPart::Rollback => {
                ("rollback", "in a worker, fsync per commit (sqlite-wasm's default)")
            }
            BrowserBenchPart::Tab => ("tab", "latency as seen by a page"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

pub(crate) fn run(arguments: BenchBrowserArgs, output: Printer) -> anyhow::Result<()> {
    let progress = output.progress();
    if arguments.setup {
        let drivers = browser::setup(&arguments.competitors.folder, &progress);
        output.text(format_args!("{drivers}"));
        return output.json(&BenchOutput::Drivers(drivers));
    }
    let plan = BrowserBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        only: arguments.only.iter().map(|part| part.0).collect(),
        competitors: arguments.competitors.folder,
    };
    let report = browser::run(&plan, &progress)?;
    print_and_save(report, &arguments.method.places.report_dir, output)
}
