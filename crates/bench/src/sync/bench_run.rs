//! A run of the benchmark: what is measured, and with what.

use std::path::PathBuf;
use std::time::Duration;

use crate::competitors::server::CompetitorService;
use crate::message_generator::MessageSchedule;
use crate::server_process::PreparedDataDir;
use crate::service::load_stats::{LoadOperation, ServiceLoad};
use crate::service::service_api::ServiceApi;
use crate::service::systems_under_test::{ClientPool, ServiceFixture};

pub(crate) const UNIT: &str = "requests";

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncBenchPart {
    /// Devices push.
    Upload,
    /// Devices pull.
    Download,
    /// Devices of a user push, and pull what the others pushed.
    Cross,
    /// One user, and many.
    Users,
    /// The competitor that has both, with WAL and without.
    Wal,
    /// The server's memory.
    Memory,
    /// Devices that listen.
    Live,
}

/// A service to measure beside Warren.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCompetitor {
    /// Python and SQLite, as published.
    PlanService,
    /// Actual Budget's sync server.
    Actual,
}

impl SyncCompetitor {
    /// Its folder in `bench/competitors`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::PlanService => "plan-service",
            Self::Actual => "actual-sync",
        }
    }
}

/// What the sections share.
pub(crate) struct SyncBenchRun<'a> {
    pub(crate) plan: &'a SyncBenchPlan,
    pub(crate) fixture: ServiceFixture<'a>,
    pub(crate) services: Vec<(SyncCompetitor, CompetitorService)>,
}

impl SyncBenchRun<'_> {
    pub(crate) fn prepare(
        &self,
        name: &str,
        accounts: usize,
        active: usize,
    ) -> anyhow::Result<PreparedDataDir> {
        PreparedDataDir::make(self.fixture.folder.join(name), accounts, active)
    }

    pub(crate) fn service(
        &self,
        competitor: SyncCompetitor,
    ) -> Option<(&CompetitorService, ServiceApi)> {
        let api = match competitor {
            SyncCompetitor::PlanService => ServiceApi::PlanService,
            SyncCompetitor::Actual => ServiceApi::Actual,
        };
        let found = self.services.iter().find(|(found, _)| *found == competitor);
        found.map(|(_, service)| (service, api))
    }

    pub(crate) fn crowd(&self) -> ClientPool {
        ClientPool { users: self.plan.users, devices: self.plan.devices }
    }

    pub(crate) fn load(&self, operation: LoadOperation) -> ServiceLoad {
        let SyncBenchPlan { messages, limit, seeded, rate, .. } = *self.plan;
        let pace = MessageSchedule::even(1);
        // Else those who pull fall behind those who push.
        let limit = match operation {
            LoadOperation::Cross => limit.max(2 * messages * self.plan.devices),
            _ => limit,
        };
        ServiceLoad { operation, messages, limit, rate, connections: None, seeded, pace }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct SyncBenchPlan {
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
    pub only: Vec<SyncBenchPart>,
    /// Who else is measured.
    pub against: Vec<SyncCompetitor>,
    /// Requests a second of an open loop; `None` for a closed one.
    pub rate: Option<f64>,
    /// Users of the tables about many; `memory` has a hundred accounts for each.
    pub pool: usize,
    /// Where the files go.
    pub folder: PathBuf,
    /// The competitors' folder.
    pub competitors: PathBuf,
    /// The shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}
