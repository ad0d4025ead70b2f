//! `warren bench sync`: compares Warren's sync service with others in one run.
//!
//! The published load tests, *upload*, *download* and *cross*, run against the shipped binary and
//! against `bench/competitors`: services that others would run instead. Each round of each case
//! gets a fresh service with seeded users.
//!
//! # Not here
//! - Bulk, one user, PostgreSQL → `bulk.rs`. Rounds, ratios, spread → `suite.rs`.

mod bench_run;
mod live;
mod memory;
mod sections;

use anyhow::Context;
use engine::ScratchFolder;
use indicatif::ProgressBar;

use self::bench_run::SyncBenchRun;
pub use self::bench_run::{SyncBenchPart, SyncBenchPlan, SyncCompetitor};
use crate::competitors::server::CompetitorService;
use crate::competitors::setup::CompetitorKind;
use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::{self, CompetitorFilter};
use crate::format::format_threshold;
use crate::machine::MachineInfo;
use crate::message_generator::ContentKind;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::service::systems_under_test::ServiceFixture;
use crate::suite::{self, BenchSection, StopRule};

const TITLE: &str = "Warren: a sync service";
const LEAD: &str = "Devices of several users push messages to a service on the same machine, and \
    pull them. Warren is the shipped binary: each user has a separate encrypted file, and a push \
    is answered when it is on the disk. The load generator is one thread and shares the machine's \
    cores with the service; the tables show how much CPU time both used. Cases run in random \
    order, each on a fresh service; ratios compare cases of the same round.";

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &SyncBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let counts = [plan.users, plan.devices, plan.messages, plan.limit, plan.rounds, plan.pool];
    anyhow::ensure!(!counts.contains(&0) && !plan.duration.is_zero(), "nothing to measure");
    let is_rate = plan.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0);
    anyhow::ensure!(is_rate, "the rate must be greater than 0 requests per second");
    let folder =
        ScratchFolder::new(&plan.folder, "bench").context("cannot use the work directory")?;
    let (services, notes) = services(plan, bar);
    let mut report = BenchReport {
        format: REPORT_FORMAT,
        benchmark: "sync".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(plan),
        configurations: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        goals: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    };
    bar.set_message("creating accounts");
    let fixture = ServiceFixture::new(
        folder.path(),
        &plan.program,
        ContentKind::Letters(plan.content_bytes),
    )?;
    let run = SyncBenchRun { plan, fixture, services };
    let few = run.prepare("few", plan.users, plan.users)?;
    let stop_rule = StopRule::rounds(plan.rounds, plan.duration);
    let mut measure = |section: BenchSection<'_>| {
        report.tables.push(suite::run(section, &stop_rule, bar)?);
        anyhow::Ok(())
    };
    for section in sections::operations(&run, &few) {
        measure(section)?;
    }
    if plan.wants(SyncBenchPart::Users) {
        let many = run.prepare("many", plan.pool, plan.pool)?;
        measure(sections::users(&run, &many))?;
    }
    if plan.wants(SyncBenchPart::Wal) {
        for section in sections::wal(&run, &few) {
            measure(section)?;
        }
    }
    if plan.wants(SyncBenchPart::Memory) {
        bar.set_message("creating accounts");
        let accounts = plan.pool * memory::ACCOUNTS_PER_USER;
        let many = run.prepare("accounts", accounts, plan.pool)?;
        measure(memory::section(&run, &few, &many))?;
    }
    if plan.wants(SyncBenchPart::Live) {
        measure(live::section(&run, &few))?;
    }
    let failures = run.fixture.failures.take().into_iter();
    report.notes.extend(failures.map(|failure| format!("failed request: {failure}")));
    bar.finish_and_clear();
    Ok(report)
}

impl SyncBenchPlan {
    fn wants(&self, part: SyncBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Returns the services that are present, and notes: the work of each for a message, and why
/// others are absent.
fn services(
    plan: &SyncBenchPlan,
    bar: &ProgressBar,
) -> (Vec<(SyncCompetitor, CompetitorService)>, Vec<String>) {
    let mut services = Vec::new();
    let mut notes = vec![
        "Warren (requests in protobuf): one file per user in WAL mode, encrypted with chacha20; \
         flushed before the response, waiting requests share a flush; an index finds messages that \
         are already stored; a fingerprint of the whole set is kept up to date and sent in each \
         response"
            .to_owned(),
    ];
    let target = competitors::target(&plan.competitors);
    for competitor in &plan.against {
        let names = [competitor.folder()];
        let wanted = CompetitorFilter {
            kind: CompetitorKind::Server,
            names: Some(&names),
            missing: MissingPolicy::Build,
        };
        let found =
            competitors::find(wanted, &plan.competitors, &target, bar, CompetitorService::ask);
        notes.extend(found.absent.iter().map(competitors::UnavailableCompetitor::note));
        notes.extend(found.present.iter().map(|service| service.about.to_string()));
        services.extend(found.present.into_iter().map(|service| (*competitor, service)));
    }
    if !plan.against.contains(&SyncCompetitor::PlanService)
        && plan.only.contains(&SyncBenchPart::Wal)
    {
        notes.push("no table `wal`: it requires --against plan-service".to_owned());
    }
    (services, notes)
}

fn settings(plan: &SyncBenchPlan) -> Vec<ReportSetting> {
    let loop_of = |rate: f64| format!("open, {rate} requests/s");
    let settings = [
        ("users", plan.users.to_string()),
        ("devices a user", plan.devices.to_string()),
        ("messages a push", plan.messages.to_string()),
        ("bytes a message", plan.content_bytes.to_string()),
        ("messages a pull at most", plan.limit.to_string()),
        ("messages of a user before", plan.seeded.to_string()),
        ("loop", plan.rate.map_or_else(|| "closed".to_owned(), loop_of)),
        ("rounds", plan.rounds.to_string()),
        ("seconds a case", format_threshold(plan.duration.as_secs_f64())),
    ];
    settings.into_iter().map(|(name, value)| ReportSetting::new(name, value)).collect()
}
