//! The tables about one database: the published experiment, durability, isolation, mixed load,
//! ciphers.

use engine::Durability::{Disk, Os};

use super::UNIT;
use super::bare::Loop;
use super::bed::Bed;
use super::producers::{self, Load};
use super::rivals::Synchronous;
use crate::suite::{Case, Section};

/// Transactions of a commit of the bare loop that everything is compared with.
const BATCH: usize = 1_000;
/// Callers, where their number is not what is measured.
const WAITING: usize = 1_000;

const NORMAL: &str = "NORMAL";
const FULL: &str = "FULL";

fn bare(bed: &Bed, name: &str, work: Loop, synchronous: &'static str) -> Case<'static> {
    let bed = bed.clone();
    Case::new(name, move |duration| bed.bare(work, synchronous, duration))
}

fn engine(bed: &Bed, name: impl Into<String>, load: Load) -> Case<'static> {
    let bed = bed.clone();
    Case::new(name, move |duration| bed.engine(load, duration))
}

fn baseline(bed: &Bed) -> Case<'static> {
    bare(bed, "bare loop, 1,000 a commit", Loop::of(BATCH), NORMAL)
}

/// The published rows that are about SQLite, and ours.
pub(super) fn published(bed: &Bed) -> Section<'static> {
    let savepoints = Loop { has_savepoints: true, ..Loop::of(BATCH) };
    let reads = Load { reads: 3, ..Load::of(WAITING, Os) };
    Section {
        name: "published".to_owned(),
        unit: UNIT,
        title: "the published experiment: what one thread reaches calling SQLite, and what a \
                thousand tasks reach through the engine, each transaction isolated"
            .to_owned(),
        cases: vec![
            baseline(bed).published(186_157.0),
            bare(bed, "bare loop, a commit each", Loop::of(1), NORMAL).published(44_096.0),
            bare(bed, "bare loop, a savepoint each", savepoints, NORMAL).published(121_922.0),
            bare(
                bed,
                "bare loop, 3 reads and a write",
                Loop { reads: 3, ..Loop::of(BATCH) },
                NORMAL,
            ),
            engine(bed, "Warren", Load::of(WAITING, Os)),
            engine(bed, "Warren, 3 reads and a write", reads).published(102_545.0),
        ],
    }
}

/// Both durabilities by the number of callers.
pub(super) fn durability(bed: &Bed) -> Section<'static> {
    let mut cases = vec![
        baseline(bed),
        bare(bed, "bare loop, a commit each", Loop::of(1), NORMAL),
        bare(bed, "bare loop, a commit each, fsync", Loop::of(1), FULL),
        bare(bed, "bare loop, 1,000 a commit, fsync", Loop::of(BATCH), FULL),
    ];
    for durability in [Os, Disk] {
        for waiting in [1, 10, 100, 1_000, 10_000] {
            let name = format!("{durability:?}, {waiting} waiting");
            cases.push(engine(bed, name, Load::of(waiting, durability)));
        }
    }
    for waiting in [16, 128] {
        let bed = bed.clone();
        cases.push(Case::new(format!("Os, {waiting} plain threads"), move |duration| {
            bed.with_database(|database| {
                producers::run_threads(database, &bed.pairs, Load::of(waiting, Os), duration)
            })
        }));
    }
    Section {
        name: "durability".to_owned(),
        unit: UNIT,
        title: "callers that wait for their answer: committed (Os), or flushed to the disk (Disk)"
            .to_owned(),
        cases,
    }
}

/// What isolation costs by the share of failing transactions.
pub(super) fn isolation(bed: &Bed) -> Section<'static> {
    let mut cases = vec![baseline(bed)];
    for (percent, failing_ppm) in [("0", 0), ("0.1", 1_000), ("1", 10_000), ("10", 100_000)] {
        let savepoints = Loop { has_savepoints: true, failing_ppm, ..Loop::of(BATCH) };
        cases.push(bare(
            bed,
            &format!("bare loop, a savepoint each, {percent} % fail"),
            savepoints,
            NORMAL,
        ));
        let load = Load { failing_ppm, ..Load::of(WAITING, Os) };
        cases.push(engine(bed, format!("Warren, {percent} % fail"), load));
    }
    Section {
        name: "isolation".to_owned(),
        unit: UNIT,
        title: "transactions that fail after their first write, among others in the same commit"
            .to_owned(),
        cases,
    }
}

/// Reads on the callers' threads beside the writer.
pub(super) fn mixed(bed: &Bed) -> Section<'static> {
    let only = |read_only_ppm| Load { reads: 1, read_only_ppm, ..Load::of(WAITING, Os) };
    Section {
        name: "mixed".to_owned(),
        unit: UNIT,
        title: "point reads on the callers' threads beside the writer; a rate counts requests"
            .to_owned(),
        cases: vec![
            engine(bed, "write only", Load::of(WAITING, Os)),
            engine(bed, "3 reads and a write", Load { reads: 3, ..Load::of(WAITING, Os) }),
            engine(bed, "75 % read, 25 % read and write", only(750_000)),
            engine(bed, "95 % read, 5 % read and write", only(950_000)),
            bare(
                bed,
                "bare loop, 3 reads and a write",
                Loop { reads: 3, ..Loop::of(BATCH) },
                NORMAL,
            ),
            baseline(bed),
        ],
    }
}

/// The engine as the baseline of those who are measured beside it.
pub(super) fn warren(bed: &Bed) -> Case<'static> {
    engine(bed, "Warren", Load::of(WAITING, Os))
}

type Beside = (&'static str, Synchronous, usize, fn(&Bed) -> Case<'static>);

/// The tables of the rival libraries: name, durability, reads beside each write, and ours.
pub(super) fn beside_libraries() -> [Beside; 3] {
    [
        ("libraries", Synchronous::Normal, 0, warren),
        ("libraries-fsync", Synchronous::Full, 0, |bed| {
            engine(bed, "Warren, Disk", Load::of(WAITING, Disk))
        }),
        ("libraries-reads", Synchronous::Normal, 3, |bed| {
            engine(bed, "Warren", Load { reads: 3, ..Load::of(WAITING, Os) })
        }),
    ]
}

/// What a cipher costs, by the size of a commit, and through the engine.
pub(super) fn ciphers(beds: &[(String, Bed)]) -> Vec<Section<'static>> {
    let bare_of = |name: &str, batch: usize| Section {
        name: name.to_owned(),
        unit: UNIT,
        title: format!("ciphers, bare loop, {batch} a commit; the hot accounts fit in the cache"),
        cases: beds
            .iter()
            .map(|(cipher, bed)| bare(bed, cipher, Loop::of(batch), NORMAL))
            .collect(),
    };
    let through_engine = Section {
        name: "cipher-engine".to_owned(),
        unit: UNIT,
        title: "ciphers, through the engine, a thousand callers".to_owned(),
        cases: beds
            .iter()
            .map(|(cipher, bed)| engine(bed, cipher, Load::of(WAITING, Os)))
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
