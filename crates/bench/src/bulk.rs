//! `warren bench bulk`: many messages of one user, stored as fast as they can be.
//!
//! Locally beside the bare loop, which inserts the same rows into an equal encrypted table; and on
//! PostgreSQL beside the two ways that were published, at several distances from the database.
//!
//! # Not here
//! - Many users, latencies of requests → `sync.rs`. Rounds, ratios, spread → `suite.rs`.

mod bare;
mod delay_proxy;
mod http;
mod local;
mod postgres;
mod store;
mod trie;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use crdt::{Message, NodeId};
use engine::ScratchFolder;
use indicatif::ProgressBar;

use crate::machine::MachineInfo;
use crate::measure::RoundSample;
use crate::message_generator::MessageGenerator;
use crate::report::BenchReport;
use crate::suite::{self, BenchSection, StopRule};

/// What to measure.
#[derive(Clone, Debug)]
pub struct BulkBenchPlan {
    /// Messages, a table for each count.
    pub counts: Vec<usize>,
    /// Messages of one page.
    pub page: usize,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// Rounds, each in a random order.
    pub rounds: usize,
    /// Names of the tables to make; empty for all.
    pub only: Vec<BulkBenchPart>,
    /// Milliseconds to the database and back, a table for each.
    pub latencies_ms: Vec<u64>,
    /// What would take longer is left out, and the report says so.
    pub case_max: Duration,
    /// Where the files go.
    pub folder: PathBuf,
    /// The shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkBenchPart {
    /// SQLite: the bare loop, and Warren.
    Local,
    /// PostgreSQL: the published ways.
    Postgres,
}

/// What the rates count.
const UNIT: &str = "messages";
const TITLE: &str = "Warren: messages in bulk";
const LEAD: &str = "One user's messages, all new, stored in pages. The bare loop is one thread that \
    calls SQLite with one prepared statement, a transaction and an fsync per page, into an equal \
    encrypted table; moving the bytes is sending the same requests to a server that reads them and \
    does nothing. What Warren does beyond both: decoding, checking, hashing, the queue, the \
    fingerprint. Ratios are within a round, of cases that ran in random order, each into fresh \
    files; published figures were measured elsewhere.";
/// 169,000 messages are a day's.
const STEP_MS: u64 = 500;
const NODE: NodeId = NodeId(1);

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &BulkBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let counts = plan.counts.iter().chain([&plan.page, &plan.rounds]);
    anyhow::ensure!(counts.into_iter().all(|count| *count > 0), "nothing to measure");
    // PostgreSQL runs as a user of its own where we are root.
    let folder = ScratchFolder::new(&plan.folder, "bench");
    let folder = folder.and_then(ScratchFolder::let_others_enter);
    let folder = folder.context("the folder to measure in")?;
    let mut report = BenchReport {
        benchmark: "bulk".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(plan),
        configurations: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        aims: Vec::new(),
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    };
    let run = BulkBenchRun { plan, bar };
    if plan.wants(BulkBenchPart::Local) {
        bar.set_message("accounts");
        let (tables, settings) = local::run(&run, folder.path())?;
        report.tables.extend(tables);
        report.settings.extend(settings);
    }
    if plan.wants(BulkBenchPart::Postgres) {
        bar.set_message("PostgreSQL");
        let (tables, notes) = postgres::run(&run, folder.path())?;
        report.tables.extend(tables);
        report.notes.extend(notes);
    }
    bar.finish_and_clear();
    Ok(report)
}

/// What the parts share.
struct BulkBenchRun<'a> {
    plan: &'a BulkBenchPlan,
    bar: &'a ProgressBar,
}

impl BulkBenchRun<'_> {
    fn measure(&self, section: BenchSection<'_>) -> anyhow::Result<suite::ResultTable> {
        // A case ends when all is stored.
        let stop_rule = StopRule::rounds(self.plan.rounds, Duration::ZERO);
        suite::run(section, &stop_rule, self.bar)
    }

    fn messages(&self, count: usize) -> anyhow::Result<Vec<Message>> {
        MessageGenerator::apart(self.plan.content_bytes, 0, STEP_MS).next(count, NODE)
    }
}

impl BulkBenchPlan {
    fn wants(&self, part: BulkBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// All messages were stored in that time.
fn sample(count: usize, elapsed: Duration) -> RoundSample {
    let mut sample = RoundSample::new(count as u64, elapsed);
    sample.facts.push(("seconds", elapsed.as_secs_f64()));
    sample
}

fn settings(plan: &BulkBenchPlan) -> Vec<(String, String)> {
    let settings = [
        ("messages of a page", plan.page.to_string()),
        ("bytes a message", plan.content_bytes.to_string()),
        ("rounds", plan.rounds.to_string()),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
