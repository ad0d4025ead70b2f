//! Implements `warren bench sync`: measures requests per second of the sync service.

use std::time::Duration;

use anyhow::Context;
use bench::sync::{SyncBenchPart, SyncBenchPlan, SyncCompetitor};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, CompetitorArgs, command_line, print_and_save};
use crate::commands::serve::file_descriptors;
use crate::output::Printer;

/// Measure requests per second of the sync service, compared with other services.
///
/// Runs the published load tests upload, download and cross against this binary's server over
/// loopback: the devices of several users push changes, pull them, or both in turn. Saves
/// `warren-sync.json` and `warren-sync.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench sync\n  warren bench sync --only upload,cross --users 100 --devices 2 --push-messages 10\n  warren bench sync --against plan-service,actual --rounds 5 --seconds 5\n  warren bench sync --only cross --rate 500 --seconds 30\n  warren bench sync --only memory --many-users 1000"
)]
pub(crate) struct BenchSyncArgs {
    /// Users that sync concurrently.
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    users: usize,
    /// Devices per user. At most 64 connections are open; further devices share them.
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    devices: usize,
    /// Number of messages per push.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    push_messages: usize,
    /// Maximum number of messages per pull.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    pull_limit: usize,
    /// Messages that each user has at the start.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    seed_messages: u64,
    /// Size of a message's content.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    content_bytes: usize,
    /// Duration of each benchmark in each round.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds per benchmark, each in random order on a fresh service.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Start this many requests per second regardless of responses (open loop), and measure latency
    /// from the planned start. Without it, each device waits for its response (closed loop).
    #[arg(long, value_name = "REQUESTS")]
    rate: Option<f64>,
    /// Users in the parts `users` and `memory`; `memory` creates a hundred accounts for each.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    many_users: usize,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<SyncPartArg>,
    /// Also measure these competitors in the same run. Installed on first use.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COMPETITORS")]
    against: Vec<SyncCompetitorArg>,
    #[command(flatten)]
    competitors: CompetitorArgs,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// A value of `--only`: a `SyncBenchPart`.
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
            SyncBenchPart::Upload => ("upload", "all devices push"),
            SyncBenchPart::Download => ("download", "all devices pull from random cursors"),
            SyncBenchPart::Cross => ("cross", "all devices push, then pull the others' changes"),
            SyncBenchPart::Users => ("users", "one user, then many"),
            SyncBenchPart::Wal => ("wal", "plan service with and without WAL"),
            SyncBenchPart::Memory => ("memory", "server memory"),
            SyncBenchPart::Live => ("live", "delivery to a listening device, among thousands"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// A value of `--against`: a `SyncCompetitor`.
#[derive(Clone, Copy)]
struct SyncCompetitorArg(SyncCompetitor);

impl ValueEnum for SyncCompetitorArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(SyncCompetitor::PlanService), Self(SyncCompetitor::Actual)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            SyncCompetitor::PlanService => {
                ("plan-service", "FastAPI, SQLAlchemy and SQLite (requires python3)")
            }
            SyncCompetitor::Actual => {
                ("actual", "Actual Budget sync server (requires node and npm)")
            }
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// The wanted limit of open files: the table `live` holds some hundreds of connections for each
/// user.
const DESCRIPTORS_COUNT: usize = 20_000;

pub(crate) fn run(arguments: BenchSyncArgs, output: Printer) -> anyhow::Result<()> {
    file_descriptors::raise_limit(DESCRIPTORS_COUNT);
    let plan = SyncBenchPlan {
        users: arguments.users,
        devices: arguments.devices,
        messages: arguments.push_messages,
        limit: arguments.pull_limit,
        seeded: arguments.seed_messages,
        content_bytes: arguments.content_bytes,
        duration: Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        against: arguments.against.iter().map(|competitor| competitor.0).collect(),
        rate: arguments.rate,
        pool: arguments.many_users,
        folder: arguments.places.work_dir,
        competitors: arguments.competitors.folder,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::sync::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.places.report_dir, output)
}
