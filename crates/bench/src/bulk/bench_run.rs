//! Defines a run of the benchmark: its plan, its parts and its messages.

use std::path::PathBuf;
use std::time::Duration;

use crdt::{Message, NodeId};
use indicatif::ProgressBar;

use crate::measure::RoundSample;
use crate::message_generator::MessageGenerator;
use crate::suite::{self, BenchSection, StopRule};

/// The unit of the rates.
pub(crate) const UNIT: &str = "messages";

pub(crate) const NODE: NodeId = NodeId(1);

/// The time between two messages: one day holds about 169,000 of them.
const STEP_MS: u64 = 500;

/// The state that all parts share.
pub(crate) struct BulkBenchRun<'a> {
    pub(crate) plan: &'a BulkBenchPlan,
    pub(crate) bar: &'a ProgressBar,
}

impl BulkBenchRun<'_> {
    pub(crate) fn measure(&self, section: BenchSection<'_>) -> anyhow::Result<suite::ResultTable> {
        // A case ends when it has stored all messages.
        let stop_rule = StopRule::rounds(self.plan.rounds, Duration::ZERO);
        suite::run(section, &stop_rule, self.bar)
    }

    pub(crate) fn messages(&self, count: usize) -> anyhow::Result<Vec<Message>> {
        MessageGenerator::apart(self.plan.content_bytes, 0, STEP_MS).next(count, NODE)
    }
}

/// Returns the sample of a case that stored `count` messages in `elapsed`.
pub(crate) fn sample(count: usize, elapsed: Duration) -> RoundSample {
    let mut sample = RoundSample::new(count as u64, elapsed);
    sample.metrics.push(("seconds", elapsed.as_secs_f64()));
    sample
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct BulkBenchPlan {
    /// Numbers of messages; each has a table.
    pub counts: Vec<usize>,
    /// Messages of one page.
    pub page: usize,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The parts to measure; empty for all.
    pub only: Vec<BulkBenchPart>,
    /// Round-trip times to the database in milliseconds; each has a table.
    pub latencies_ms: Vec<u64>,
    /// The longest time of a case: slower cases are skipped, and the report notes it.
    pub case_max: Duration,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// The path of the shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkBenchPart {
    /// SQLite: the bare loop and Warren.
    Local,
    /// PostgreSQL: the published methods and Warren.
    Postgres,
}
