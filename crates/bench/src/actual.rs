//! `warren bench actual`: compares Actual Budget's sync server with Warren's gateway.
//!
//! Both receive the same bytes on the same kind of connection from the same process, and each
//! round of each case has a fresh server process on a fresh copy of its files. The published
//! server is the baseline of every table.
//! baseline of every table.
//!
//! # Not here
//! - The requests of Actual's apps → `service/actual.rs`, their messages →
//!   `message_generator/budget.rs`.
//! - Rounds, ratios, verdicts → `suite.rs`; goals → `goals.rs`.

mod bench_run;
mod import;
mod memory;
mod sections;
mod sizes;

use std::fmt;
use std::path::Path;

use anyhow::Context;
use engine::ScratchFolder;
use indicatif::ProgressBar;
use serde::Serialize;
use utoipa::ToSchema;

use self::bench_run::ActualBenchRun;
pub use self::bench_run::{ActualBenchPart, ActualBenchPlan};
use crate::competitors::server::{CompetitorServerInfo, CompetitorService};
use crate::competitors::setup::CompetitorKind;
use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::{self, CompetitorFilter, CompetitorSearch, UnavailableCompetitor};
use crate::format::format_threshold;
use crate::goals::{GoalResult, GoalThreshold};
use crate::machine::MachineInfo;
use crate::message_generator::ContentKind;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::service::systems_under_test::{MEMORY_IDLE, MEMORY_PEAK, ServiceFixture};
use crate::suite::{self, ResultTable, StopRule};

/// The published server, listed by whether it can be measured on this machine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompetitorInstallation {
    /// The published server, if it works on this machine; otherwise empty.
    present: Vec<CompetitorServerInfo>,
    /// The published server, if it does not work on this machine; otherwise empty.
    absent: Vec<UnavailableCompetitor>,
}

/// The published server's folder in `bench/competitors`.
const COMPETITOR: &str = "actual-sync";
pub(crate) const SETUP: &str = "warren bench actual --setup";
const TITLE: &str = "Warren: Actual Budget's sync";
const LEAD: &str = "Compares Actual Budget's published sync server with Warren's gateway: the same \
    requests as the apps send, on loopback and on the same disk. Each round of each case starts a \
    fresh server process. Cases run in random order; ratios compare cases of the same round. The \
    load generator is one thread with persistent connections and shares the machine's cores with \
    the server.";
const WARREN: &str = "Warren (its gateway): one SQLite file per budget, kept open, in WAL mode \
    with synchronous FULL, encrypted with chacha20; waiting requests share a flush; an index finds \
    messages that are already stored; the trie is updated in place";
const DURABILITY: &str = "durability: both servers answer a sync when its messages are on the \
    disk; Actual uses a rollback journal with synchronous FULL in an unencrypted file, Warren \
    flushes the WAL of an encrypted file";
const UNCOMPRESSED: &str = "requests do not ask for compressed responses, which the published \
    server does not support, so responses are equally long";

/// The number of goals of the memory table: idle memory and peak memory.
const MEMORY_GOALS: usize = 2;

/// Builds and installs the published server.
pub fn setup(competitors: &Path, bar: &ProgressBar) -> CompetitorInstallation {
    let found = find(competitors, MissingPolicy::Build, bar);
    bar.finish_and_clear();
    let present = found.present.into_iter().map(|service| service.about).collect();
    CompetitorInstallation { present, absent: found.absent }
}

pub(crate) fn find(
    competitors: &Path,
    missing: MissingPolicy,
    bar: &ProgressBar,
) -> CompetitorSearch<CompetitorService> {
    let wanted =
        CompetitorFilter { kind: CompetitorKind::Server, names: Some(&[COMPETITOR]), missing };
    competitors::find(
        wanted,
        competitors,
        &competitors::target(competitors),
        bar,
        CompetitorService::ask,
    )
}

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &ActualBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let counts = [plan.messages.clone(), plan.users.clone(), vec![plan.rounds, plan.page]];
    let is_nothing = counts.iter().any(|counts| counts.is_empty() || counts.contains(&0));
    anyhow::ensure!(!is_nothing && !plan.duration.is_zero(), "nothing to measure");
    let folder =
        ScratchFolder::new(&plan.folder, "bench").context("cannot use the work directory")?;
    let found = find(&plan.competitors, MissingPolicy::Absent(SETUP), bar);
    let mut notes: Vec<String> = found.absent.iter().map(UnavailableCompetitor::note).collect();
    notes.extend(found.present.iter().map(|service| service.about.to_string()));
    notes.extend([WARREN, DURABILITY, UNCOMPRESSED].map(str::to_owned));
    let fixture = ServiceFixture::new(folder.path(), &plan.program, ContentKind::Budget)?;
    let run = ActualBenchRun { plan, fixture, service: found.present.into_iter().next() };
    let stop_rule = StopRule::rounds(plan.rounds, plan.duration);
    let mut tables = Vec::new();
    for section in sections::for_run(&run)? {
        tables.push(suite::run(section, &stop_rule, bar)?);
    }
    let failures = run.fixture.failures.take().into_iter();
    notes.extend(failures.map(|failure| format!("failed request: {failure}")));
    bar.finish_and_clear();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "actual".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(plan),
        configurations: Vec::new(),
        matrices: Vec::new(),
        goals: goals(&tables),
        tables,
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn settings(plan: &ActualBenchPlan) -> Vec<ReportSetting> {
    let settings = [
        ("messages a page", plan.page.to_string()),
        ("messages of a small budget", sections::SMALL_BUDGET.to_string()),
        ("rounds", plan.rounds.to_string()),
        ("seconds a case", format_threshold(plan.duration.as_secs_f64())),
    ];
    settings.into_iter().map(|(name, value)| ReportSetting::new(name, value)).collect()
}

/// Returns the results of issue 6's goals for the tables of this run.
fn goals(tables: &[ResultTable]) -> Vec<GoalResult> {
    let rate = |name: &'static str, least: f64, parts: &'static [&str]| {
        let is_of = |table: &&ResultTable| parts.iter().any(|part| table.name.starts_with(part));
        let tables = tables.iter().filter(is_of);
        tables.filter_map(move |table| {
            GoalResult::for_rate(name, GoalThreshold::AtLeast(least), table)
        })
    };
    let memory = |metric: &'static str| {
        let tables = tables.iter().filter(|table| table.name == sections::MEMORY);
        tables.filter_map(move |table| {
            GoalResult::for_metric(metric, GoalThreshold::AtMost(0.1), table, MEMORY_GOALS)
        })
    };
    rate("messages a second", 10.0, &["bulk-", "pages-"])
        .chain(rate("small syncs a second", 5.0, &["small-"]))
        .chain(memory(MEMORY_PEAK))
        .chain(memory(MEMORY_IDLE))
        .collect()
}

impl fmt::Display for CompetitorInstallation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = self.present.iter().map(|about| format!("present: {about}"));
        let lines: Vec<String> =
            present.chain(self.absent.iter().map(UnavailableCompetitor::note)).collect();
        f.write_str(&lines.join("\n"))
    }
}
