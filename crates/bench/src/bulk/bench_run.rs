//! A run of the benchmark: what is measured, and with what.

use std::path::PathBuf;
use std::time::Duration;

use crdt::{Message, NodeId};
use indicatif::ProgressBar;

use crate::measure::RoundSample;
use crate::message_generator::MessageGenerator;
use crate::suite::{self, BenchSection, StopRule};

/// What the rates count.
pub(crate) const UNIT: &str = "messages";

pub(crate) const NODE: NodeId = NodeId(1);

/// 169,000 messages are a day's.
const STEP_MS: u64 = 500;

/// What the parts share.
pub(crate) struct BulkBenchRun<'a> {
    pub(crate) plan: &'a BulkBenchPlan,
    pub(crate) bar: &'a ProgressBar,
}

impl BulkBenchRun<'_> {
    pub(crate) fn measure(&self, section: BenchSection<'_>) -> anyhow::Result<suite::ResultTable> {
        // A case ends when all is stored.
        let stop_rule = StopRule::rounds(self.plan.rounds, Duration::ZERO);
        suite::run(section, &stop_rule, self.bar)
    }

    pub(crate) fn messages(&self, count: usize) -> anyhow::Result<Vec<Message>> {
        MessageGenerator::apart(self.plan.content_bytes, 0, STEP_MS).next(count, NODE)
    }
}

/// All messages were stored in that time.
pub(crate) fn sample(count: usize, elapsed: Duration) -> RoundSample {
    let mut sample = RoundSample::new(count as u64, elapsed);
    sample.metrics.push(("seconds", elapsed.as_secs_f64()));
    sample
}

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
