//! Builds the tables about requests: the published load tests, one user compared with many, WAL on
//! and off.

use super::bench_run::{SyncBenchPart, SyncBenchRun, SyncCompetitor};
use crate::format::counted;
use crate::server_process::PreparedDataDir;
use crate::service::load_stats::LoadOperation;
use crate::service::systems_under_test::{
    AS_IT_COMES, ClientPool, CompetitorSetting, SystemUnderTest,
};
use crate::suite::{BenchCase, BenchSection};
use crate::sync::bench_run::UNIT;

/// The number of a user's devices where one user is compared with many.
const DEVICES: usize = 2;

const fn sqlite(
    journal_mode: &'static str,
    synchronous: &'static str,
    workers: usize,
) -> CompetitorSetting {
    CompetitorSetting { workers, journal_mode: Some(journal_mode), synchronous: Some(synchronous) }
}

/// The settings of the plan service: as published, and with Warren's durability.
const PLAN_SERVICE: [(&str, CompetitorSetting); 4] = [
    ("plan-service, one worker, WAL, NORMAL", sqlite("WAL", "NORMAL", 1)),
    ("plan-service, two workers, WAL, NORMAL", sqlite("WAL", "NORMAL", 2)),
    ("plan-service, one worker, WAL, FULL", sqlite("WAL", "FULL", 1)),
    ("plan-service, two workers, WAL, FULL", sqlite("WAL", "FULL", 2)),
];

/// Requests per second before and after the author enabled WAL.
const PUBLISHED: [(SyncBenchPart, LoadOperation, &str, f64, f64); 3] = [
    (SyncBenchPart::Upload, LoadOperation::Upload, "upload", 100.0, 343.0),
    (SyncBenchPart::Download, LoadOperation::Download, "download", 95.0, 276.0),
    (SyncBenchPart::Cross, LoadOperation::Cross, "cross", 95.0, 246.0),
];

fn case<'a>(
    run: &'a SyncBenchRun<'_>,
    name: &str,
    peer: SystemUnderTest<'a>,
    operation: LoadOperation,
) -> BenchCase<'a> {
    let (pool, load) = (run.crowd(), run.load(operation));
    BenchCase::new(name, move |duration| run.fixture.measure(peer, pool, load, duration))
}

fn warren<'a>(
    run: &'a SyncBenchRun<'_>,
    prepared: &'a PreparedDataDir,
    operation: LoadOperation,
) -> BenchCase<'a> {
    case(run, "Warren", SystemUnderTest::Warren(prepared), operation)
}

/// Returns the published load tests, with all services.
pub(super) fn operations<'a>(
    run: &'a SyncBenchRun<'_>,
    prepared: &'a PreparedDataDir,
) -> Vec<BenchSection<'a>> {
    let wanted = PUBLISHED.into_iter().filter(|(part, ..)| run.plan.wants(*part));
    let section = |(_, operation, name, ..): (SyncBenchPart, LoadOperation, &str, f64, f64)| {
        let mut cases = vec![warren(run, prepared, operation)];
        if let Some((service, api)) = run.service(SyncCompetitor::PlanService) {
            let settings = PLAN_SERVICE.into_iter();
            cases.extend(settings.map(|(name, setting)| {
                case(run, name, SystemUnderTest::Competitor(service, api, setting), operation)
            }));
        }
        if let Some((service, api)) = run.service(SyncCompetitor::Actual) {
            let peer = SystemUnderTest::Competitor(service, api, AS_IT_COMES);
            cases.push(case(run, "Actual", peer, operation));
        }
        let title = match operation {
            LoadOperation::Upload => "all devices push",
            LoadOperation::Download => "all devices pull from random cursors",
            _ => "all devices push, then pull the others' changes",
        };
        BenchSection { name: name.to_owned(), unit: UNIT, title: title.to_owned(), cases }
    };
    wanted.map(section).collect()
}

/// Returns the section that measures the cost of requests from many users.
pub(super) fn users<'a>(run: &'a SyncBenchRun<'_>, many: &'a PreparedDataDir) -> BenchSection<'a> {
    let case = |name: String, users: usize, connections: Option<usize>| {
        let pool = ClientPool { users, devices: DEVICES };
        let mut load = run.load(LoadOperation::Cross);
        load.connections = connections;
        BenchCase::new(name, move |duration| {
            run.fixture.measure(SystemUnderTest::Warren(many), pool, load, duration)
        })
    };
    let count = run.plan.pool;
    let users = counted(count, "user", "users");
    BenchSection {
        name: "users".to_owned(),
        unit: UNIT,
        title: format!(
            "the same requests, alternately pushes and pulls, by the devices of one user and of \
             {users}, each user with a separate encrypted file"
        ),
        cases: vec![
            case("one user on two connections".to_owned(), 1, Some(DEVICES)),
            case(format!("{count} users on two connections"), count, Some(DEVICES)),
            case(format!("{count} users on a connection each, 64 at most"), count, None),
        ],
    }
}

/// Returns the published load tests with WAL off and on; none without the plan service, which
/// supports both.
pub(super) fn wal<'a>(
    run: &'a SyncBenchRun<'_>,
    prepared: &'a PreparedDataDir,
) -> Vec<BenchSection<'a>> {
    let Some((service, api)) = run.service(SyncCompetitor::PlanService) else {
        return Vec::new();
    };
    let section =
        |(_, operation, name, without, with): (SyncBenchPart, LoadOperation, &str, f64, f64)| {
            let case = |name: &str, setting| {
                self::case(run, name, SystemUnderTest::Competitor(service, api, setting), operation)
            };
            let cases = vec![
                case("plan-service, rollback journal, FULL", sqlite("DELETE", "FULL", 1))
                    .published(without),
                case("plan-service, WAL, NORMAL", sqlite("WAL", "NORMAL", 1)).published(with),
                case("plan-service, WAL, FULL", sqlite("WAL", "FULL", 1)),
                warren(run, prepared, operation),
            ];
            BenchSection {
                name: format!("wal-{name}"),
                unit: UNIT,
                title: format!("{name}, WAL off and on; Warren always uses WAL"),
                cases,
            }
        };
    PUBLISHED.into_iter().map(section).collect()
}
