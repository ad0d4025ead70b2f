//! `warren bench`: measures, side by side, on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench::tps::{Part, Rival};
use bench::{sync, tps};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use engine::Cipher;

use crate::output::Output;

/// Measure Warren beside the bare cost of the work, in one run.
#[derive(Subcommand)]
pub(crate) enum Command {
    Sync(Sync),
    Tps(Tps),
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

/// Isolated transactions a second over a large table, beside the bare loop that calls SQLite.
///
/// Makes the published experiment again on this machine: a table of accounts, transactions of two
/// updates, callers that wait for their answers. Prints the tables, and saves them as
/// `warren-tps.json` and, with charts, as `warren-tps.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench tps\n  warren bench tps --rows 10000000 --only published,isolation --rounds 7\n  warren bench tps --rows 1000000000 --folder /mnt/disk --keep\n  warren bench tps --only published --against postgres,libraries"
)]
pub(crate) struct Tps {
    /// Rows of the table. A billion need 16 GB of disk and about ten minutes to load.
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1_000..))]
    rows: i64,
    /// How long each case works in each round.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds of each case, each round in a random order.
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    rounds: usize,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<PartName>,
    /// Measure others in the same run.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "RIVALS")]
    against: Vec<RivalName>,
    /// Encrypt the table: `chacha20`, `aes256cbc`, `aegis`, `sqlcipher` or `ascon128`.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
    /// Databases of the `vaults` table.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    vaults: usize,
    /// Where the files go: the disk that is measured.
    #[arg(long, default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Leave the loaded table in the folder, and use one that is there.
    #[arg(long)]
    keep: bool,
    /// Where the rivals' drivers are: `bench/rivals` of Warren's repository.
    #[arg(long, default_value = "bench/rivals", value_name = "DIR")]
    rivals: PathBuf,
    /// Where the results go.
    #[arg(long, default_value = ".", value_name = "DIR")]
    report: PathBuf,
}

/// `Part`, as the command line names it.
#[derive(Clone, Copy)]
struct PartName(Part);

impl ValueEnum for PartName {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(Part::Published),
            Self(Part::Durability),
            Self(Part::Isolation),
            Self(Part::Mixed),
            Self(Part::Checkpoint),
            Self(Part::Cipher),
            Self(Part::Vaults),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            Part::Published => {
                PossibleValue::new("published").help("the published table, beside ours")
            }
            Part::Durability => {
                PossibleValue::new("durability").help("1 to 10,000 callers, committed or fsynced")
            }
            Part::Isolation => {
                PossibleValue::new("isolation").help("0 to 10 % failing transactions")
            }
            Part::Mixed => PossibleValue::new("mixed").help("reads beside writes"),
            Part::Checkpoint => {
                PossibleValue::new("checkpoint").help("the longest pause, the largest WAL")
            }
            Part::Cipher => PossibleValue::new("cipher").help("ciphers by size of commit"),
            Part::Vaults => PossibleValue::new("vaults").help("thousands of encrypted databases"),
        })
    }
}

/// `Rival`, as the command line names it.
#[derive(Clone, Copy)]
struct RivalName(Rival);

impl ValueEnum for RivalName {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Rival::Postgres), Self(Rival::Libraries)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            Rival::Postgres => PossibleValue::new("postgres")
                .help("a server of its own, from the distribution's package"),
            Rival::Libraries => {
                PossibleValue::new("libraries").help("sqlx, tokio-rusqlite, better-sqlite3")
            }
        })
    }
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Sync(arguments) => run_sync(arguments, output),
        Command::Tps(arguments) => run_tps(arguments, output),
    }
}

fn run_sync(arguments: Sync, output: Output) -> anyhow::Result<()> {
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

fn run_tps(arguments: Tps, output: Output) -> anyhow::Result<()> {
    let duration = Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let plan = tps::Plan {
        rows: arguments.rows,
        duration,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        against: arguments.against.iter().map(|rival| rival.0).collect(),
        cipher: arguments.cipher,
        vaults: arguments.vaults,
        folder: arguments.folder,
        keep: arguments.keep,
        rivals: arguments.rivals,
        command: format!("warren {}", command.join(" ")),
    };
    let report = tps::run(&plan, &output.progress())?;
    output.line(format_args!("{report}"));
    save(&arguments.report, "warren-tps.json", &serde_json::to_string_pretty(&report)?)?;
    save(&arguments.report, "warren-tps.html", &report.html())?;
    output.line(format_args!(
        "\nsaved as warren-tps.json and warren-tps.html in {}",
        arguments.report.display()
    ));
    output.value(&report)
}

fn save(folder: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
}
