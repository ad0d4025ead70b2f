//! `warren bench sync`: what a sync service answers, ours beside others', in one run.
//!
//! The published load tests, *upload*, *download* and *cross*, against the shipped binary and
//! against `bench/rivals`: services that others would run instead. Each round of each case gets a
//! fresh service with seeded users.
//!
//! # Not here
//! - Bulk, one user, PostgreSQL → `bulk.rs`. Rounds, ratios, spread → `suite.rs`.

mod live;
mod memory;
mod sections;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use engine::ScratchFolder;
use indicatif::ProgressBar;

use crate::changes::{Content, Pace};
use crate::figures::asked;
use crate::machine::Machine;
use crate::report::Report;
use crate::rivals::server::Service;
use crate::rivals::setup::{Kind, Missing};
use crate::rivals::{self, Wanted};
use crate::served::Prepared;
use crate::service::dialect::Dialect;
use crate::service::load::{Load, Operation};
use crate::service::peers::{Bed, Crowd};
use crate::suite::{self, Effort, Section};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Users who sync at the same time.
    pub users: usize,
    /// Devices of each.
    pub devices: usize,
    /// Messages of a push.
    pub messages: usize,
    /// Messages of a pull at most.
    pub limit: usize,
    /// Messages that each user has before.
    pub seeded: u64,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// How long each case works in each round.
    pub duration: Duration,
    /// Rounds, each in a random order.
    pub rounds: usize,
    /// Names of the tables to make; empty for all.
    pub only: Vec<Part>,
    /// Who else is measured.
    pub against: Vec<Rival>,
    /// Requests a second of an open loop; `None` for a closed one.
    pub rate: Option<f64>,
    /// Users of the tables about many; `memory` has a hundred accounts for each.
    pub crowd: usize,
    /// Where the files go.
    pub folder: PathBuf,
    /// The rivals' folder.
    pub rivals: PathBuf,
    /// The shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Devices push.
    Upload,
    /// Devices pull.
    Download,
    /// Devices of a user push, and pull what the others pushed.
    Cross,
    /// One user, and many.
    Users,
    /// The rival that has both, with WAL and without.
    Wal,
    /// The server's memory.
    Memory,
    /// Devices that listen.
    Live,
}

/// A service to measure beside Warren.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Python and SQLite, as published.
    PlanService,
    /// Actual Budget's sync server.
    Actual,
}

impl Rival {
    /// Its folder in `bench/rivals`.
    fn folder(self) -> &'static str {
        match self {
            Self::PlanService => "plan-service",
            Self::Actual => "actual-sync",
        }
    }
}

const TITLE: &str = "Warren: a sync service";
const LEAD: &str = "Devices of several users push messages to a service on the same machine, and \
    pull them. Warren is the shipped binary: each user has an encrypted file of their own, and a \
    push is answered when it is on the disk. The load generator is one thread and shares the \
    machine's cores with the service; the tables say what both used. Ratios are within a round, \
    of cases that ran in random order, each on a fresh service.";

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let counts = [plan.users, plan.devices, plan.messages, plan.limit, plan.rounds, plan.crowd];
    anyhow::ensure!(!counts.contains(&0) && !plan.duration.is_zero(), "nothing to measure");
    let is_rate = plan.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0);
    anyhow::ensure!(is_rate, "a rate is more than 0 requests a second");
    let folder = ScratchFolder::new(&plan.folder, "bench").context("the folder to measure in")?;
    let (services, notes) = services(plan, bar);
    let mut report = Report {
        benchmark: "sync".into(),
        machine: Machine::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(plan),
        configurations: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        aims: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    };
    bar.set_message("accounts");
    let bed = Bed::new(folder.path(), &plan.program, Content::Letters(plan.content_bytes))?;
    let run = Run { plan, bed, services };
    let few = run.prepare("few", plan.users, plan.users)?;
    let effort = Effort::rounds(plan.rounds, plan.duration);
    let mut measure = |section: Section<'_>| {
        report.tables.push(suite::run(section, &effort, bar)?);
        anyhow::Ok(())
    };
    for section in sections::operations(&run, &few) {
        measure(section)?;
    }
    if plan.wants(Part::Users) {
        let many = run.prepare("many", plan.crowd, plan.crowd)?;
        measure(sections::users(&run, &many))?;
    }
    if plan.wants(Part::Wal) {
        for section in sections::wal(&run, &few) {
            measure(section)?;
        }
    }
    if plan.wants(Part::Memory) {
        bar.set_message("accounts");
        let accounts = plan.crowd * memory::ACCOUNTS_PER_USER;
        let many = run.prepare("accounts", accounts, plan.crowd)?;
        measure(memory::section(&run, &few, &many))?;
    }
    if plan.wants(Part::Live) {
        measure(live::section(&run, &few))?;
    }
    let failures = run.bed.failures.take().into_iter();
    report.notes.extend(failures.map(|failure| format!("a failure, {failure}")));
    bar.finish_and_clear();
    Ok(report)
}

/// What the sections share.
struct Run<'a> {
    plan: &'a Plan,
    bed: Bed<'a>,
    services: Vec<(Rival, Service)>,
}

impl Run<'_> {
    fn prepare(&self, name: &str, accounts: usize, active: usize) -> anyhow::Result<Prepared> {
        Prepared::make(self.bed.folder.join(name), accounts, active)
    }

    fn service(&self, rival: Rival) -> Option<(&Service, Dialect)> {
        let dialect = match rival {
            Rival::PlanService => Dialect::PlanService,
            Rival::Actual => Dialect::Actual,
        };
        let found = self.services.iter().find(|(found, _)| *found == rival);
        found.map(|(_, service)| (service, dialect))
    }

    fn crowd(&self) -> Crowd {
        Crowd { users: self.plan.users, devices: self.plan.devices }
    }

    fn load(&self, operation: Operation) -> Load {
        let Plan { messages, limit, seeded, rate, .. } = *self.plan;
        let pace = Pace::even(1);
        // Else those who pull fall behind those who push.
        let limit = match operation {
            Operation::Cross => limit.max(2 * messages * self.plan.devices),
            _ => limit,
        };
        Load { operation, messages, limit, rate, connections: None, seeded, pace }
    }
}

impl Plan {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Those that are here, and notes: what each does for a message, who is absent and why.
fn services(plan: &Plan, bar: &ProgressBar) -> (Vec<(Rival, Service)>, Vec<String>) {
    let mut services = Vec::new();
    let mut notes = vec![
        "Warren (asked in protobuf): a file per user in WAL mode, encrypted with chacha20; flushed \
         before the answer, requests that wait together share a flush; a message that is known is found by its index; \
         a fingerprint of the whole set is kept up to date and sent in each answer"
            .to_owned(),
    ];
    let target = rivals::target(&plan.rivals);
    for rival in &plan.against {
        let names = [rival.folder()];
        let wanted = Wanted { kind: Kind::Server, names: Some(&names), missing: Missing::Build };
        let found = rivals::find(wanted, &plan.rivals, &target, bar, Service::ask);
        notes.extend(found.absent.iter().map(rivals::Absent::note));
        notes.extend(found.present.iter().map(|service| service.about.to_string()));
        services.extend(found.present.into_iter().map(|service| (*rival, service)));
    }
    if !plan.against.contains(&Rival::PlanService) && plan.only.contains(&Part::Wal) {
        notes.push("no table `wal`: it is about --against plan-service".to_owned());
    }
    (services, notes)
}

fn settings(plan: &Plan) -> Vec<(String, String)> {
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
        ("seconds a case", asked(plan.duration.as_secs_f64())),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
