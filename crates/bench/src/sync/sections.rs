//! The tables about requests: the published load tests, one user and many, WAL on and off.

use super::{Part, Rival, Run};
use crate::served::Prepared;
use crate::service::load::Operation;
use crate::service::peers::{AS_IT_COMES, Crowd, Peer, Setting};
use crate::suite::{Case, Section};

pub(super) const UNIT: &str = "requests";
/// A user's devices where one user is compared with many.
const DEVICES: usize = 2;

const fn sqlite(journal_mode: &'static str, synchronous: &'static str, workers: usize) -> Setting {
    Setting { workers, journal_mode: Some(journal_mode), synchronous: Some(synchronous) }
}

/// How the plan service is run: as published, and with the durability that Warren has.
const PLAN_SERVICE: [(&str, Setting); 4] = [
    ("plan-service, one worker, WAL, NORMAL", sqlite("WAL", "NORMAL", 1)),
    ("plan-service, two workers, WAL, NORMAL", sqlite("WAL", "NORMAL", 2)),
    ("plan-service, one worker, WAL, FULL", sqlite("WAL", "FULL", 1)),
    ("plan-service, two workers, WAL, FULL", sqlite("WAL", "FULL", 2)),
];

/// Requests a second before and after the author switched WAL on.
const PUBLISHED: [(Part, Operation, &str, f64, f64); 3] = [
    (Part::Upload, Operation::Upload, "upload", 100.0, 343.0),
    (Part::Download, Operation::Download, "download", 95.0, 276.0),
    (Part::Cross, Operation::Cross, "cross", 95.0, 246.0),
];

fn case<'a>(run: &'a Run<'_>, name: &str, peer: Peer<'a>, operation: Operation) -> Case<'a> {
    let (crowd, load) = (run.crowd(), run.load(operation));
    Case::new(name, move |duration| run.bed.measure(peer, crowd, load, duration))
}

fn warren<'a>(run: &'a Run<'_>, prepared: &'a Prepared, operation: Operation) -> Case<'a> {
    case(run, "Warren", Peer::Warren(prepared), operation)
}

/// The published load tests, against everybody.
pub(super) fn operations<'a>(run: &'a Run<'_>, prepared: &'a Prepared) -> Vec<Section<'a>> {
    let wanted = PUBLISHED.into_iter().filter(|(part, ..)| run.plan.wants(*part));
    let section = |(_, operation, name, ..): (Part, Operation, &str, f64, f64)| {
        let mut cases = vec![warren(run, prepared, operation)];
        if let Some((service, dialect)) = run.service(Rival::PlanService) {
            let settings = PLAN_SERVICE.into_iter();
            cases.extend(settings.map(|(name, setting)| {
                case(run, name, Peer::Rival(service, dialect, setting), operation)
            }));
        }
        if let Some((service, dialect)) = run.service(Rival::Actual) {
            let peer = Peer::Rival(service, dialect, AS_IT_COMES);
            cases.push(case(run, "Actual", peer, operation));
        }
        let title = match operation {
            Operation::Upload => "every device pushes",
            Operation::Download => "every device pulls from a random cursor",
            _ => "every device pushes, then pulls what the others pushed",
        };
        Section { name: name.to_owned(), unit: UNIT, title: title.to_owned(), cases }
    };
    wanted.map(section).collect()
}

/// What it costs that requests are of many users.
pub(super) fn users<'a>(run: &'a Run<'_>, many: &'a Prepared) -> Section<'a> {
    let case = |name: String, users: usize, connections: Option<usize>| {
        let crowd = Crowd { users, devices: DEVICES };
        let mut load = run.load(Operation::Cross);
        load.connections = connections;
        Case::new(name, move |duration| run.bed.measure(Peer::Warren(many), crowd, load, duration))
    };
    let count = run.plan.crowd;
    Section {
        name: "users".to_owned(),
        unit: UNIT,
        title: format!(
            "the same requests, pushes and pulls in turn, by the devices of one user and of \
             {count}, each with an encrypted file of their own"
        ),
        cases: vec![
            case("one user on two connections".to_owned(), 1, Some(DEVICES)),
            case(format!("{count} users on two connections"), count, Some(DEVICES)),
            case(format!("{count} users on a connection each, 64 at most"), count, None),
        ],
    }
}

/// Nothing without the rival that has both.
pub(super) fn wal<'a>(run: &'a Run<'_>, prepared: &'a Prepared) -> Vec<Section<'a>> {
    let Some((service, dialect)) = run.service(Rival::PlanService) else { return Vec::new() };
    let section = |(_, operation, name, without, with): (Part, Operation, &str, f64, f64)| {
        let case = |name: &str, setting| {
            self::case(run, name, Peer::Rival(service, dialect, setting), operation)
        };
        let cases = vec![
            case("plan-service, rollback journal, FULL", sqlite("DELETE", "FULL", 1))
                .published(without),
            case("plan-service, WAL, NORMAL", sqlite("WAL", "NORMAL", 1)).published(with),
            case("plan-service, WAL, FULL", sqlite("WAL", "FULL", 1)),
            warren(run, prepared, operation),
        ];
        Section {
            name: format!("wal-{name}"),
            unit: UNIT,
            title: format!("{name}, WAL off and on; Warren, which is never without"),
            cases,
        }
    };
    PUBLISHED.into_iter().map(section).collect()
}
