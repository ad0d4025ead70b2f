//! Implements `warren bench tps`: measures isolated transactions per second on a large table.

use std::time::Duration;

use anyhow::Context;
use bench::tps::{TpsBenchPart, TpsBenchPlan, TpsCompetitor};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use engine::Cipher;

use super::bench_output::{BenchOutputArgs, CompetitorArgs, command_line, print_and_save};
use crate::output::Printer;

/// Measure isolated transactions per second on a large table.
///
/// Repeats the published experiment on this machine: a table of accounts, transactions of two
/// updates, and callers that wait for their results. The baseline is a bare loop of SQLite calls.
/// Saves `warren-tps.json` and `warren-tps.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench tps\n  warren bench tps --rows 10000000 --only published,isolation --rounds 7\n  warren bench tps --rows 1000000000 --work-dir /mnt/disk --keep-table\n  warren bench tps --only published --against postgres,libraries"
)]
pub(crate) struct BenchTpsArgs {
    /// Rows in the table. A billion rows need 16 GB of disk and about ten minutes to load.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1_000..))]
    rows: i64,
    /// Duration of each benchmark in each round.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds per benchmark, each in random order.
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    rounds: usize,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<TpsPartArg>,
    /// Also measure these competitors in the same run.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COMPETITORS")]
    against: Vec<TpsCompetitorArg>,
    /// Encrypt the table with this cipher: chacha20, aes256cbc, aegis, sqlcipher or ascon128.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
    /// Number of databases in the part `vaults`.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    vaults: usize,
    /// Keep the loaded table in the work directory, and reuse an existing one.
    #[arg(long)]
    keep_table: bool,
    #[command(flatten)]
    competitors: CompetitorArgs,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// A value of `--only`: a `TpsBenchPart`.
#[derive(Clone, Copy)]
struct TpsPartArg(TpsBenchPart);

impl ValueEnum for TpsPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(TpsBenchPart::Published),
            Self(TpsBenchPart::Durability),
            Self(TpsBenchPart::Isolation),
            Self(TpsBenchPart::Mixed),
            Self(TpsBenchPart::Pauses),
            Self(TpsBenchPart::Cipher),
            Self(TpsBenchPart::Vaults),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            TpsBenchPart::Published => {
                PossibleValue::new("published").help("the published experiment")
            }
            TpsBenchPart::Durability => {
                PossibleValue::new("durability").help("1 to 10,000 callers, with and without fsync")
            }
            TpsBenchPart::Isolation => {
                PossibleValue::new("isolation").help("0 to 10 % failing transactions")
            }
            TpsBenchPart::Mixed => PossibleValue::new("mixed").help("reads and writes"),
            TpsBenchPart::Pauses => {
                PossibleValue::new("pauses").help("longest pauses during checkpoints")
            }
            TpsBenchPart::Cipher => PossibleValue::new("cipher").help("ciphers by commit size"),
            TpsBenchPart::Vaults => {
                PossibleValue::new("vaults").help("thousands of encrypted databases")
            }
        })
    }
}

/// A value of `--against`: a `TpsCompetitor`.
#[derive(Clone, Copy)]
struct TpsCompetitorArg(TpsCompetitor);

impl ValueEnum for TpsCompetitorArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(TpsCompetitor::Postgres), Self(TpsCompetitor::Libraries)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            TpsCompetitor::Postgres => {
                PossibleValue::new("postgres").help("the PostgreSQL of the distribution")
            }
            TpsCompetitor::Libraries => {
                PossibleValue::new("libraries").help("sqlx, tokio-rusqlite, better-sqlite3")
            }
        })
    }
}

pub(crate) fn run(arguments: BenchTpsArgs, output: Printer) -> anyhow::Result<()> {
    let duration = Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?;
    let plan = TpsBenchPlan {
        rows: arguments.rows,
        duration,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        against: arguments.against.iter().map(|competitor| competitor.0).collect(),
        cipher: arguments.cipher,
        vaults: arguments.vaults,
        folder: arguments.places.work_dir,
        keep: arguments.keep_table,
        competitors: arguments.competitors.folder,
        command: command_line(),
    };
    let report = bench::tps::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.places.report_dir, output)
}
