//! Defines a run of the benchmark: its plan, its parts and its services.

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
    /// Devices of several users push messages.
    Upload,
    /// Devices of several users pull messages.
    Download,
    /// Devices of a user push, and pull what the others pushed.
    Cross,
    /// One user is compared with many.
    Users,
    /// The plan service runs with WAL and without.
    Wal,
    /// The server's memory is measured.
    Memory,
    /// Devices subscribe to changes.
    Live,
}

/// A service with which Warren is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCompetitor {
    /// The published service: Python and SQLite.
    PlanService,
    /// Actual Budget's sync server.
    Actual,
}

impl SyncCompetitor {
    /// Returns the service's folder in `bench/competitors`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::PlanService => "plan-service",
            Self::Actual => "actual-sync",
        }
    }
}

/// The state that all sections share.
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
        // With a lower limit, devices that pull would fall behind devices that push.
        let limit = match operation {
            LoadOperation::Cross => limit.max(2 * messages * self.plan.devices),
            _ => limit,
        };
        ServiceLoad { operation, messages, limit, rate, connections: None, seeded, pace }
    }
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct SyncBenchPlan {
    /// The number of users who sync at the same time.
    pub users: usize,
    /// Devices of each user.
    pub devices: usize,
    /// Messages of a push.
    pub messages: usize,
    /// Messages of a pull at most.
    pub limit: usize,
    /// Messages that each user already has.
    pub seeded: u64,
    /// Bytes of a message's content.
    pub content_bytes: usize,
    /// How long each case works in each round.
    pub duration: Duration,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The parts to measure; empty for all.
    pub only: Vec<SyncBenchPart>,
    /// The services with which Warren is compared.
    pub against: Vec<SyncCompetitor>,
    /// Requests per second of an open loop; `None` for a closed one.
    pub rate: Option<f64>,
    /// Users of the tables about many users; `memory` has a hundred accounts for each.
    pub pool: usize,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// The folder with the competitors.
    pub competitors: PathBuf,
    /// The path of the shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}
