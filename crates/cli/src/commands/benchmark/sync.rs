//! `warren bench sync`.

use std::time::Duration;

use anyhow::Context;
use bench::sync::{SyncBenchPart, SyncBenchPlan, SyncCompetitor};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, CompetitorArgs, command_line, print_and_save};
use crate::commands::serve::file_descriptors;
use crate::output::Printer;

/// Requests a second of a sync service, beside services that others would run.
///
/// Makes the published load tests upload, download and cross against the server of this binary, on
/// loopback: devices of several users push changes, pull them, or both in turn. Prints the tables,
/// and saves them as `warren-sync.json` and, with charts, as `warren-sync.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench sync\n  warren bench sync --only upload,cross --users 100 --devices 2 --messages 10\n  warren bench sync --against plan-service,actual --rounds 5 --seconds 5\n  warren bench sync --only cross --rate 500 --seconds 30\n  warren bench sync --only memory --crowd 1000"
)]
pub(crate) struct BenchSyncArgs {
    /// Users who sync at the same time.
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    users: usize,
    /// Devices of each user. Up to 64 connections are open; more devices take turns.
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    devices: usize,
    /// Messages of a push.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    messages: usize,
    /// Messages of a pull at most.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: usize,
    /// Messages that each user has before.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    seeded: u64,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content: usize,
    /// How long each case works in each round.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds of each case, each round in a random order and each on a fresh service.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Begin so many requests a second whatever the answers do, and count waits from when a
    /// request was meant to begin. Without it each device waits for its answer.
    #[arg(long, value_name = "REQUESTS")]
    rate: Option<f64>,
    /// Users of the tables `users` and `memory`, which has a hundred accounts for each.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    crowd: usize,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<SyncPartArg>,
    /// Measure others in the same run. They are installed when first wanted.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "RIVALS")]
    against: Vec<SyncCompetitorArg>,
    #[command(flatten)]
    rivals: CompetitorArgs,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// `SyncBenchPart`, as the command line names it.
#[derive(Clone, Copy)]
struct SyncPartArg(SyncBenchPart);

impl ValueEnum for SyncPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(SyncBenchPart::Upload),
            Self(SyncBenchPart::Download),
            Self(SyncBenchPart::Cross),
            Self(SyncBenchPart::Users),
            Self(SyncBenchPart::Wal),
            Self(SyncBenchPart::Memory),
            Self(SyncBenchPart::Live),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            SyncBenchPart::Upload => ("upload", "every device pushes"),
            SyncBenchPart::Download => ("download", "every device pulls from random cursors"),
            SyncBenchPart::Cross => {
                ("cross", "every device pushes, then pulls what the others pushed")
            }
            SyncBenchPart::Users => ("users", "one user, and many"),
            SyncBenchPart::Wal => ("wal", "the plan service with WAL and without"),
            SyncBenchPart::Memory => ("memory", "the server's memory"),
            SyncBenchPart::Live => {
                ("live", "from one device to another that listens, beside thousands")
            }
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// `SyncCompetitor`, as the command line names it.
#[derive(Clone, Copy)]
struct SyncCompetitorArg(SyncCompetitor);

impl ValueEnum for SyncCompetitorArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(SyncCompetitor::PlanService), Self(SyncCompetitor::Actual)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            SyncCompetitor::PlanService => {
                ("plan-service", "FastAPI, SQLAlchemy, SQLite; needs python3")
            }
            SyncCompetitor::Actual => ("actual", "Actual Budget's sync server; needs node and npm"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// The table `live` holds some hundreds of connections for each user.
const DESCRIPTORS_COUNT: usize = 20_000;

pub(crate) fn run(arguments: BenchSyncArgs, output: Printer) -> anyhow::Result<()> {
    file_descriptors::raise_limit(DESCRIPTORS_COUNT);
    let plan = SyncBenchPlan {
        users: arguments.users,
        devices: arguments.devices,
        messages: arguments.messages,
        limit: arguments.limit,
        seeded: arguments.seeded,
        content_bytes: arguments.content,
        duration: Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        against: arguments.against.iter().map(|competitor| competitor.0).collect(),
        rate: arguments.rate,
        pool: arguments.crowd,
        folder: arguments.places.folder,
        competitors: arguments.rivals.rivals,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::sync::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.places.report, output)
}
