//! `warren bench reconcile`: measures the cost of finding the differences between a device's
//! messages and the server's.
//!
//! The server is the shipped binary on loopback. The device is the state machine that replicas
//! use, on messages in memory: reading a device's own log is not measured.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use crdt::{Message, NodeId, Timestamp};
use engine::ScratchFolder;
use indicatif::ProgressBar;
use prost::Message as _;
use protocol::{PushRequest, PushResponse, ReconcileEntry, ReconcileResponse, SetReconciler};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use replica::{HttpTransport, Transport};

use crate::format::counted;
use crate::machine::MachineInfo;
use crate::measure::{RoundSample, time};
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::server_process::{PreparedDataDir, ServerProcess};
use crate::suite::{self, BenchCase, BenchSection, StopRule};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct ReconcileBenchPlan {
    /// Messages that both sides hold.
    pub messages: u64,
    /// Numbers of messages that only one side holds; each number has a row, and each side holds
    /// half of them.
    pub differences: Vec<u64>,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// The path of the shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

const TITLE: &str = "Warren: finding differences";
const LEAD: &str = "A device and a server hold the same messages, except for some, at random \
    positions, that only one of them has. Reconciliation ends when the missing messages of both \
    sides are found. Messages that the device lacks arrive with the responses; messages that the \
    server lacks are pushed afterwards, which is not counted. The baseline downloads the whole \
    vault instead, as a new device does. Rates are messages of the whole set per second; ratios \
    compare cases of the same round.";
/// 2016-11-21: timestamps of the ten years from there on are not ahead of any clock.
const FIRST_MS: u64 = 1_479_686_400_000;
const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;
const MINUTE_MS: u64 = 60_000;
const PAGE_MESSAGES: u64 = 40_000;

/// The distribution of a set of messages in time.
#[derive(Clone, Copy)]
struct SetShape {
    name: &'static str,
    title: &'static str,
    span_ms: u64,
}

const SHAPES: [SetShape; 2] = [
    SetShape { name: "years", title: "spread over ten years", span_ms: TEN_YEARS_MS },
    SetShape { name: "minute", title: "within one minute", span_ms: MINUTE_MS },
];

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &ReconcileBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let counts = [plan.messages, plan.rounds as u64, plan.differences.len() as u64];
    ensure!(counts.iter().all(|count| *count > 0), "nothing to measure");
    let folder =
        ScratchFolder::new(&plan.folder, "bench").context("cannot use the work directory")?;
    bar.set_message("creating accounts");
    let prepared =
        PreparedDataDir::make(folder.path().join("prepared"), SHAPES.len(), SHAPES.len())?;
    let data = folder.path().join("data");
    prepared.copy_to(&data)?;
    let served = ServerProcess::start(&plan.program, &data, &[])?;
    let stop_rule = StopRule::rounds(plan.rounds, Duration::ZERO);
    let mut tables = Vec::new();
    for (shape, token) in SHAPES.into_iter().zip(&prepared.tokens) {
        bar.set_message(format!("{}: storing messages", shape.name));
        let vault = BenchVault {
            plan,
            shape,
            http: HttpTransport::new(&format!("http://{}", served.address)),
            token: token.clone(),
        };
        vault.fill()?;
        tables.push(suite::run(vault.section()?, &stop_rule, bar)?);
    }
    bar.finish_and_clear();
    let settings = [("messages", plan.messages), ("bytes of content", plan.content_bytes as u64)];
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "reconcile".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings
            .map(|(name, value)| ReportSetting::new(name, value.to_string()))
            .to_vec(),
        configurations: Vec::new(),
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// A vault of the server with its messages, and the connection to it.
#[derive(Clone)]
struct BenchVault<'a> {
    plan: &'a ReconcileBenchPlan,
    shape: SetShape,
    http: HttpTransport,
    token: String,
}

impl<'a> BenchVault<'a> {
    /// Returns message number `index`; those from `messages` on are between the others.
    fn message(&self, index: u64) -> anyhow::Result<Message> {
        let ReconcileBenchPlan { messages, content_bytes, .. } = self.plan;
        let (node, index_in_time) = (NodeId(index / messages), index % messages);
        // A millisecond has 64 parts, so that a minute can hold millions of messages.
        let parts = u128::from(index_in_time) * u128::from(self.shape.span_ms) * 64;
        let parts = u64::try_from(parts / u128::from(*messages))?;
        let counter = u16::try_from(parts % 64)? * 1_024;
        let timestamp = Timestamp::new(FIRST_MS + parts / 64, counter, node);
        let mut content = vec![0; *content_bytes];
        SmallRng::seed_from_u64(index).fill_bytes(&mut content);
        Ok(Message {
            timestamp: timestamp.context("the time is out of range")?,
            content: content.into(),
        })
    }

    fn fill(&self) -> anyhow::Result<()> {
        let mut start = 0;
        while start < self.plan.messages {
            let end = self.plan.messages.min(start + PAGE_MESSAGES);
            let page = (start..end).map(|index| Ok(self.message(index)?.into()));
            let request = PushRequest {
                messages: page.collect::<anyhow::Result<_>>()?,
                ..PushRequest::default()
            };
            self.http.post::<PushResponse>("/v1/sync/delta", Some(&self.token), &request)?;
            start = end;
        }
        Ok(())
    }

    fn item(&self, index: u64) -> anyhow::Result<ReconcileEntry> {
        let message = self.message(index)?;
        Ok(ReconcileEntry::from_message(message.timestamp, &message.content))
    }

    fn section(self) -> anyhow::Result<BenchSection<'a>> {
        let items = (0..self.plan.messages).map(|index| self.item(index));
        let items: Vec<ReconcileEntry> = items.collect::<anyhow::Result<_>>()?;
        let all = self.clone();
        let mut cases = vec![BenchCase::new("the whole vault", move |_| all.stream())];
        for (number, &differences) in self.plan.differences.iter().enumerate() {
            let (vault, items) = (self.clone(), items.clone());
            let mut random = SmallRng::seed_from_u64(number as u64);
            let case = BenchCase::new(format!("{differences} differences"), move |_| {
                vault.compare(&items, differences, &mut random)
            });
            #[expect(clippy::cast_precision_loss, reason = "thousands")]
            let x = differences as f64;
            cases.push(case.at("reconciliation", x, "differences"));
        }
        Ok(BenchSection {
            name: self.shape.name.to_owned(),
            unit: "messages",
            title: format!(
                "{} {}",
                counted(self.plan.messages, "message", "messages"),
                self.shape.title
            ),
            cases,
        })
    }

    fn stream(&self) -> anyhow::Result<RoundSample> {
        let mut http = self.http.clone();
        let (bytes, took) = time(|| {
            let mut bytes = 0;
            for page in http.stream(&self.token, 0)? {
                bytes += page?.encoded_len();
            }
            Ok(bytes)
        })?;
        Ok(self.sample(
            took,
            &ReconcileBenchCost { requests: 1, received: bytes, ..ReconcileBenchCost::default() },
        ))
    }

    fn compare(
        &self,
        all: &[ReconcileEntry],
        differences: u64,
        random: &mut SmallRng,
    ) -> anyhow::Result<RoundSample> {
        let messages = self.plan.messages;
        let (lacking, extra) = (differences.div_ceil(2), differences / 2);
        let mut pick = |count: u64, first: u64| {
            let mut picked = HashSet::new();
            while picked.len() as u64 != count {
                picked.insert(first + random.random_range(0..messages));
            }
            picked
        };
        let (lacking, extra) = (pick(lacking, 0), pick(extra, messages));
        let kept = (0..messages).zip(all).filter(|(index, _)| !lacking.contains(index));
        let mut items: Vec<ReconcileEntry> = kept.map(|(_, item)| *item).collect();
        for &index in &extra {
            items.push(self.item(index)?);
        }
        let (cost, took) = time(|| self.reconcile(SetReconciler::new(items)))?;
        let found = (cost.missing, cost.wanted);
        ensure!(
            found == (lacking.len(), extra.len()),
            "found {found:?} (missing here, missing on the server) of {differences} differences"
        );
        Ok(self.sample(took, &cost))
    }

    fn reconcile(&self, mut reconcile: SetReconciler) -> anyhow::Result<ReconcileBenchCost> {
        let mut cost = ReconcileBenchCost::default();
        while let Some(request) = reconcile.request() {
            cost.requests += 1;
            cost.sent += request.encoded_len();
            let path = "/v1/sync/reconcile";
            let answer: ReconcileResponse = self.http.post(path, Some(&self.token), &request)?;
            cost.received += answer.encoded_len();
            let found = reconcile.handle_response(answer.diffs)?;
            cost.contents += found.missing.iter().map(prost::Message::encoded_len).sum::<usize>();
            cost.missing += found.missing.len();
            cost.wanted += found.wanted.len();
        }
        Ok(cost)
    }

    fn sample(&self, took: Duration, cost: &ReconcileBenchCost) -> RoundSample {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let kb = |bytes: usize| bytes as f64 / 1_000.0;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let requests = cost.requests as f64;
        let mut sample = RoundSample::new(self.plan.messages, took);
        sample.metrics = vec![
            ("requests", requests),
            ("kB sent", kb(cost.sent)),
            ("kB received", kb(cost.received)),
            ("kB of it messages", kb(cost.contents)),
            ("ms", took.as_secs_f64() * 1_000.0),
        ];
        sample
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct ReconcileBenchCost {
    requests: usize,
    sent: usize,
    received: usize,
    /// The part of `received` that contains missing messages.
    contents: usize,
    missing: usize,
    wanted: usize,
}
