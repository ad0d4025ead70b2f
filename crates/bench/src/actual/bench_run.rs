//! Defines a run of the benchmark: its plan, its parts and its fixture.

use std::path::PathBuf;
use std::time::Duration;

use crate::competitors::server::CompetitorService;
use crate::service::service_api::ServiceApi;
use crate::service::systems_under_test::{AS_IT_COMES, ServiceFixture, SystemUnderTest};

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActualBenchPart {
    /// Imports, each in one request.
    Bulk,
    /// Imports that are sent in pages.
    Pages,
    /// Small syncs: one or ten transactions in a request.
    Small,
    /// Syncs with no messages to send or to get.
    Empty,
    /// Downloads of all messages by a new device.
    Download,
    /// An import, small syncs and a download, with the server's memory.
    Memory,
}

/// The state that all sections share.
pub(crate) struct ActualBenchRun<'a> {
    pub(crate) plan: &'a ActualBenchPlan,
    pub(crate) fixture: ServiceFixture<'a>,
    /// The published server, if it is installed.
    pub(crate) service: Option<CompetitorService>,
}

impl ActualBenchRun<'_> {
    /// Returns the systems to measure, the baseline first.
    pub(crate) fn peers(&self) -> Vec<(&'static str, SystemUnderTest<'_>)> {
        let published = self.service.as_ref();
        let published = published.map(|service| {
            ("Actual", SystemUnderTest::Competitor(service, ServiceApi::Actual, AS_IT_COMES))
        });
        published.into_iter().chain([("Warren", SystemUnderTest::Gateway)]).collect()
    }
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct ActualBenchPlan {
    /// Messages of an import; each size has a table.
    pub messages: Vec<usize>,
    /// Messages of a page of an import.
    pub page: usize,
    /// Numbers of users that make small syncs at the same time; each number has its tables.
    pub users: Vec<usize>,
    /// How long each case works in each round; it finishes the work that it has begun.
    pub duration: Duration,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The parts to measure; empty for all.
    pub only: Vec<ActualBenchPart>,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// The folder with the competitors.
    pub competitors: PathBuf,
    /// The path of the shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

impl ActualBenchPlan {
    pub(crate) fn wants(&self, part: ActualBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
