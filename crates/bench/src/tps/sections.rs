//! Builds the tables about one database: the published experiment, durability, isolation, mixed
//! load, ciphers.

use engine::Durability::{Disk, Os};

use super::accounts::UNIT;
use super::bare_loop::BareLoop;
use super::competitors::plan::SynchronousLevel;
use super::fixture::TpsFixture;
use super::producers::{self, ProducerLoad};
use crate::format::counted;
use crate::suite::{BenchCase, BenchSection};

/// Transactions per commit of the bare loop that is the baseline.
const BATCH: usize = 1_000;
/// The number of callers where their number is not the measured variable.
const WAITING: usize = 1_000;

const CALLERS: &str = "callers";
const FAILING: &str = "% failing";

const NORMAL: &str = "NORMAL";
const FULL: &str = "FULL";

fn bare(
    fixture: &TpsFixture,
    name: &str,
    work: BareLoop,
    synchronous: &'static str,
) -> BenchCase<'static> {
    let fixture = fixture.clone();
    BenchCase::new(name, move |duration| fixture.bare(work, synchronous, duration))
}

fn engine(fixture: &TpsFixture, name: impl Into<String>, load: ProducerLoad) -> BenchCase<'static> {
    let fixture = fixture.clone();
    BenchCase::new(name, move |duration| fixture.engine(load, duration))
}

fn baseline(fixture: &TpsFixture) -> BenchCase<'static> {
    bare(fixture, "bare loop, 1,000 per commit", BareLoop::with_batch(BATCH), NORMAL)
}

/// Returns the published rows that are about SQLite, together with Warren's.
pub(super) fn published(fixture: &TpsFixture) -> BenchSection<'static> {
    let savepoints = BareLoop { has_savepoints: true, ..BareLoop::with_batch(BATCH) };
    let reads = ProducerLoad { reads: 3, ..ProducerLoad::of(WAITING, Os) };
    BenchSection {
        name: "published".to_owned(),
        unit: UNIT,
        title: "the published experiment: one thread that calls SQLite, and a thousand tasks that \
                use the engine, each transaction isolated"
            .to_owned(),
        cases: vec![
            baseline(fixture).published(186_157.0),
            bare(fixture, "bare loop, 1 per commit", BareLoop::with_batch(1), NORMAL)
                .published(44_096.0),
            bare(fixture, "bare loop, one savepoint each", savepoints, NORMAL).published(121_922.0),
            bare(
                fixture,
                "bare loop, 3 reads and a write",
                BareLoop { reads: 3, ..BareLoop::with_batch(BATCH) },
                NORMAL,
            ),
            engine(fixture, "Warren", ProducerLoad::of(WAITING, Os)),
            engine(fixture, "Warren, 3 reads and a write", reads).published(102_545.0),
        ],
    }
}

/// Returns both durabilities with different numbers of callers.
pub(super) fn durability(fixture: &TpsFixture) -> BenchSection<'static> {
    let mut cases = vec![
        baseline(fixture),
        bare(fixture, "bare loop, 1 per commit", BareLoop::with_batch(1), NORMAL),
        bare(fixture, "bare loop, 1 per commit, fsync", BareLoop::with_batch(1), FULL),
        bare(fixture, "bare loop, 1,000 per commit, fsync", BareLoop::with_batch(BATCH), FULL),
    ];
    for durability in [Os, Disk] {
        for waiting in [1, 10, 100, 1_000, 10_000_u32] {
            let name = format!("{durability:?}, {waiting} waiting");
            let case = engine(fixture, name, ProducerLoad::of(waiting as usize, durability));
            cases.push(case.at(format!("{durability:?}"), waiting, CALLERS));
        }
    }
    for waiting in [16, 128_u32] {
        let fixture = fixture.clone();
        let load = ProducerLoad::of(waiting as usize, Os);
        let case = BenchCase::new(format!("Os, {waiting} plain threads"), move |duration| {
            fixture.with_database(|database| {
                producers::run_threads(database, &fixture.pairs, load, duration)
            })
        });
        cases.push(case.at("Os, plain threads", waiting, CALLERS));
    }
    BenchSection {
        name: "durability".to_owned(),
        unit: UNIT,
        title: "callers that wait until their transaction is committed (Os), or flushed to the \
            disk (Disk)"
            .to_owned(),
        cases,
    }
}

/// Returns the cost of isolation for different shares of failing transactions.
pub(super) fn isolation(fixture: &TpsFixture) -> BenchSection<'static> {
    let mut cases = vec![baseline(fixture)];
    for (percent, failing_ppm) in [(0.0, 0), (0.1, 1_000), (1.0, 10_000), (10.0, 100_000)] {
        let savepoints =
            BareLoop { has_savepoints: true, failing_ppm, ..BareLoop::with_batch(BATCH) };
        let each = "bare loop, one savepoint each";
        let case = bare(fixture, &format!("{each}, {percent} % fail"), savepoints, NORMAL);
        cases.push(case.at(each, percent, FAILING));
        let load = ProducerLoad { failing_ppm, ..ProducerLoad::of(WAITING, Os) };
        let case = engine(fixture, format!("Warren, {percent} % fail"), load);
        cases.push(case.at("Warren", percent, FAILING));
    }
    BenchSection {
        name: "isolation".to_owned(),
        unit: UNIT,
        title: "transactions that fail after their first write, among others in the same commit"
            .to_owned(),
        cases,
    }
}

/// Returns reads on the callers' threads while the writer works.
pub(super) fn mixed(fixture: &TpsFixture) -> BenchSection<'static> {
    let only =
        |read_only_ppm| ProducerLoad { reads: 1, read_only_ppm, ..ProducerLoad::of(WAITING, Os) };
    BenchSection {
        name: "mixed".to_owned(),
        unit: UNIT,
        title: "point reads on the callers' threads while the writer works; rates count requests"
            .to_owned(),
        cases: vec![
            engine(fixture, "write only", ProducerLoad::of(WAITING, Os)),
            engine(
                fixture,
                "3 reads and a write",
                ProducerLoad { reads: 3, ..ProducerLoad::of(WAITING, Os) },
            ),
            engine(fixture, "75 % read, 25 % read and write", only(750_000)),
            engine(fixture, "95 % read, 5 % read and write", only(950_000)),
            bare(
                fixture,
                "bare loop, 3 reads and a write",
                BareLoop { reads: 3, ..BareLoop::with_batch(BATCH) },
                NORMAL,
            ),
            baseline(fixture),
        ],
    }
}

/// Returns the engine's case, which is the baseline of the competitors.
pub(super) fn warren(fixture: &TpsFixture) -> BenchCase<'static> {
    engine(fixture, "Warren", ProducerLoad::of(WAITING, Os))
}

type CompetitorCases =
    (&'static str, SynchronousLevel, usize, fn(&TpsFixture) -> BenchCase<'static>);

/// Returns the tables of the competitor libraries: name, durability, reads before each write, and
/// Warren's case.
pub(super) fn beside_libraries() -> [CompetitorCases; 3] {
    [
        ("libraries", SynchronousLevel::Normal, 0, warren),
        ("libraries-fsync", SynchronousLevel::Full, 0, |fixture| {
            engine(fixture, "Warren, Disk", ProducerLoad::of(WAITING, Disk))
        }),
        ("libraries-reads", SynchronousLevel::Normal, 3, |fixture| {
            engine(fixture, "Warren", ProducerLoad { reads: 3, ..ProducerLoad::of(WAITING, Os) })
        }),
    ]
}

/// Returns the cost of each cipher for different sizes of commits, and through the engine.
pub(super) fn ciphers(beds: &[(String, TpsFixture)]) -> Vec<BenchSection<'static>> {
    let bare_of = |name: &str, batch: usize| BenchSection {
        name: name.to_owned(),
        unit: UNIT,
        title: format!(
            "ciphers, bare loop, {} per commit; the hot accounts fit in the cache",
            counted(batch, "transaction", "transactions")
        ),
        cases: beds
            .iter()
            .map(|(cipher, fixture)| bare(fixture, cipher, BareLoop::with_batch(batch), NORMAL))
            .collect(),
    };
    let through_engine = BenchSection {
        name: "cipher-engine".to_owned(),
        unit: UNIT,
        title: "ciphers, through the engine, a thousand callers".to_owned(),
        cases: beds
            .iter()
            .map(|(cipher, fixture)| engine(fixture, cipher, ProducerLoad::of(WAITING, Os)))
            .collect(),
    };
    vec![
        bare_of("cipher-1", 1),
        bare_of("cipher-100", 100),
        bare_of("cipher-1000", 1_000),
        bare_of("cipher-10000", 10_000),
        through_engine,
    ]
}
