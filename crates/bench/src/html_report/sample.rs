//! Provides tables of different shapes for tests.

use std::collections::BTreeMap;

use crate::curve_point::CurvePoint;
use crate::goals::{GoalResult, GoalStatus};
use crate::machine::MachineInfo;
use crate::measure::{Distribution, LatencyStats};
use crate::suite::{ResultRow, ResultTable};

pub(crate) fn machine() -> MachineInfo {
    MachineInfo {
        processor: "AMD EPYC 9R14 96-Core Processor".to_owned(),
        cores_count: 2,
        kernel: "6.8.0-1024-aws".to_owned(),
        file_system: "ext4".to_owned(),
        version: "0.1.0".into(),
        commit: "53f60f6-dirty".into(),
        sqlite: "3.51.2".into(),
        compile_options: vec!["THREADSAFE=2".to_owned()],
    }
}

/// Returns a row of three rounds around `rate`, compared with a baseline of 1,000.
pub(crate) fn row(name: &str, rate: f64) -> ResultRow {
    let rates = [rate, rate * 1.1, rate * 0.9].to_vec();
    let relative = rates.iter().map(|rate| rate / 1_000.0).collect();
    ResultRow {
        name: name.to_owned(),
        published: None,
        point: None,
        rate: Distribution::from_samples(rates),
        relative: Distribution::from_samples(relative),
        difference: None,
        by_cpu: None,
        latency: None,
        metrics: BTreeMap::new(),
    }
}

/// Returns a row on a curve, named after its point.
pub(crate) fn point(series: &str, x: f64, unit: &'static str, rate: f64) -> ResultRow {
    let point = CurvePoint { series: series.to_owned(), x, unit: unit.into() };
    ResultRow { point: Some(point), ..row(&format!("{series}, {x} {unit}"), rate) }
}

/// Returns two goals: one that is met and one that is missed.
pub(crate) fn goals() -> Vec<GoalResult> {
    let goal = |name: &str, at_least, at_most, verdict| GoalResult {
        name: name.to_owned(),
        at_least,
        at_most,
        table: "transfers".to_owned(),
        measured: Distribution::from_samples(vec![2.9, 3.0, 3.1]),
        verdict,
    };
    vec![
        goal("transactions a second", Some(2.0), None, GoalStatus::Met),
        goal("memory, MB", None, Some(0.5), GoalStatus::Missed),
    ]
}

/// Returns tables of all kinds: bars with everything; lines of two sizes; bars over a wide range
/// with hostile names; one row.
pub(crate) fn tables() -> Vec<ResultTable> {
    let table = |name: &str, title: &str, rows| ResultTable {
        name: name.to_owned(),
        unit: "transactions".into(),
        title: title.to_owned(),
        rows,
    };
    vec![
        table("transfers", "Transactions of four statements, each isolated by a savepoint", full()),
        ResultTable {
            unit: "requests".into(),
            ..table("group-commit", "How many transactions share a commit", curves())
        },
        table("competitors", "The same work, <b>through</b> other stores & a network", wide()),
        table(
            "waiting",
            "How many callers wait at the same time",
            vec![row("one caller", 1_000.0)],
        ),
    ]
}

fn full() -> Vec<ResultRow> {
    let latency = |us| {
        Some(LatencyStats {
            mean_us: None,
            p50_us: us,
            p95_us: us * 4.2,
            p99_us: us * 31.0,
            max_us: 9e6,
        })
    };
    let mut bare = row("bare SQLite, one thread", 1_000.0);
    bare.relative = Distribution::from_samples(vec![1.0, 1.0, 1.0]);
    let mut os = row("Warren, acknowledged by the operating system", 912.0);
    os.published = Some(44_096.0);
    os.latency = latency(81.4);
    let mut disk = row("Warren, acknowledged by the disk", 731.0);
    disk.published = Some(121_922.0);
    disk.latency = latency(12_500.0);
    disk.metrics.insert(
        "transactions per commit".into(),
        Distribution::from_samples(vec![412.0, 398.5, 420.25]),
    );
    disk.metrics.insert("fsyncs/s".into(), Distribution::from_samples(vec![212.0, 214.0, 209.0]));
    os.metrics.insert(
        "transactions per commit".into(),
        Distribution::from_samples(vec![512.0, 512.0, 512.0]),
    );
    vec![bare, os, disk]
}

fn curves() -> Vec<ResultRow> {
    let mut rows = vec![row("bare SQLite, one thread", 98_000.0)];
    let heights = [3_100.0, 24_000.0, 76_000.0, 91_000.0, 90_500.0];
    for (name, factor) in [("Os", 1.0), ("Disk", 0.6)] {
        for (waiting, rate) in [1.0, 10.0, 100.0, 1_000.0, 10_000.0].into_iter().zip(heights) {
            rows.push(point(name, waiting, "waiting", rate * factor));
        }
    }
    rows.push(point("Disk", 100_000.0, "waiting", f64::NAN));
    rows.push(row("never ran", f64::NAN));
    rows
}

fn wide() -> Vec<ResultRow> {
    let mut rows = vec![
        row("PostgreSQL 18, serializable, one procedure, 5 ms of network", 1_000.0),
        row("PostgreSQL 18, no network", 8_400.0),
        row("a <script>alert('x')</script> & \"quotes\"", 310.0),
        row("Warren", 41_250.0),
        row("never ran", f64::NAN),
    ];
    rows[1].metrics.insert(
        "bytes of WAL per transaction".into(),
        Distribution::from_samples(vec![1_450.0, 1_502.0]),
    );
    rows
}
