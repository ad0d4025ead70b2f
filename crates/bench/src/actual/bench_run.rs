//! A run of the benchmark: what is measured, and with what.

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
    /// Imports in pages.
    Pages,
    /// A transaction, or ten, in a request.
    Small,
    /// Nothing to send, nothing to get.
    Empty,
    /// A new device gets everything.
    Download,
    /// An import, small syncs, a download; the server's memory.
    Memory,
}

/// What the sections share.
pub(crate) struct ActualBenchRun<'a> {
    pub(crate) plan: &'a ActualBenchPlan,
    pub(crate) fixture: ServiceFixture<'a>,
    /// The published server, where there is one.
    pub(crate) service: Option<CompetitorService>,
}

impl ActualBenchRun<'_> {
    /// The baseline first.
    pub(crate) fn peers(&self) -> Vec<(&'static str, SystemUnderTest<'_>)> {
        let published = self.service.as_ref();
        let published = published.map(|service| {
            ("Actual", SystemUnderTest::Competitor(service, ServiceApi::Actual, AS_IT_COMES))
        });
        published.into_iter().chain([("Warren", SystemUnderTest::Gateway)]).collect()
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct ActualBenchPlan {
    /// Messages of an import, a table for each size.
    pub messages: Vec<usize>,
    /// Messages of a page of an import.
    pub page: usize,
    /// How many users sync a little at the same time, tables for each count.
    pub users: Vec<usize>,
    /// How long each case works in each round; it ends what it has begun.
    pub duration: Duration,
    /// Rounds, each in a random order.
    pub rounds: usize,
    /// Which tables; empty for all.
    pub only: Vec<ActualBenchPart>,
    /// Where the files go.
    pub folder: PathBuf,
    /// The competitors' folder.
    pub competitors: PathBuf,
    /// The shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

impl ActualBenchPlan {
    pub(crate) fn wants(&self, part: ActualBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
