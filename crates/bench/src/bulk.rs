//! `warren bench bulk`: stores many messages of one user as fast as possible.
//!
//! SQLite is compared with the bare loop, which inserts the same rows into an equally encrypted
//! table. PostgreSQL is compared with the two published methods, at several distances from the
//! database.
//!
//! # Not here
//! - Many users, latencies of requests → `sync.rs`. Rounds, ratios, spread → `suite.rs`.

mod bare;
mod bench_run;
mod delay_proxy;
mod http;
mod local;
mod postgres;
mod store;
mod trie;

use anyhow::Context;
use engine::ScratchFolder;
use indicatif::ProgressBar;

use self::bench_run::BulkBenchRun;
pub use self::bench_run::{BulkBenchPart, BulkBenchPlan};
use crate::machine::MachineInfo;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;

const TITLE: &str = "Warren: messages in bulk";
const LEAD: &str = "Stores the messages of one user, all new, in pages. The bare loop is one \
    thread that calls SQLite with one prepared statement, one transaction and one fsync per page, \
    on an equally encrypted table. \"Moving the bytes\" sends the same requests to a server that \
    reads them and does nothing else. Beyond both, Warren decodes, checks and hashes the messages, \
    queues them and updates the fingerprint. Cases run in random order, each into fresh files; \
    ratios compare cases of the same round. Published figures were measured elsewhere.";
/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &BulkBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let counts = plan.counts.iter().chain([&plan.page, &plan.rounds]);
    anyhow::ensure!(counts.into_iter().all(|count| *count > 0), "nothing to measure");
    // PostgreSQL runs as a different user if this process runs as root.
    let folder = ScratchFolder::new(&plan.folder, "bench");
    let folder = folder.and_then(ScratchFolder::let_others_enter);
    let folder = folder.context("cannot use the work directory")?;
    let mut report = BenchReport {
        format: REPORT_FORMAT,
        benchmark: "bulk".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(plan),
        configurations: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    };
    let run = BulkBenchRun { plan, bar };
    if plan.wants(BulkBenchPart::Local) {
        bar.set_message("creating accounts");
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

impl BulkBenchPlan {
    fn wants(&self, part: BulkBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

fn settings(plan: &BulkBenchPlan) -> Vec<ReportSetting> {
    let settings = [
        ("messages of a page", plan.page.to_string()),
        ("bytes a message", plan.content_bytes.to_string()),
        ("rounds", plan.rounds.to_string()),
    ];
    settings.into_iter().map(|(name, value)| ReportSetting::new(name, value)).collect()
}
