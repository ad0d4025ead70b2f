//! Tests with a real server. A missing PostgreSQL is a failure, because `make test` installs it.

use std::net::TcpStream;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::measure::longer_each_time;

const ROWS: i64 = 10_000;
const DURATION: Duration = Duration::from_millis(200);

fn loaded(folder: &TempDir) -> BenchPostgres {
    let postgres = BenchPostgres::start(folder.path()).unwrap();
    load(&postgres, ROWS, &ProgressBar::hidden()).unwrap();
    postgres
}

/// Returns transactions that do not conflict: the accounts of one are far from those of the next.
fn apart(index: usize) -> TransferPair {
    let debit = i64::try_from(index).unwrap() * 100 % (ROWS - 1) + 1;
    TransferPair { debit, credit: debit + 1 }
}

fn metrics(sample: &RoundSample) -> (f64, f64) {
    let metric = |name| sample.metrics.iter().find(|(metric, _)| *metric == name).unwrap().1;
    (metric("retries"), metric("deadlocks"))
}

/// Runs longer each time until the result is sufficient: a deadlock is found after
/// `deadlock_timeout`, a second, and a busy disk may take as long for a commit.
fn run_until(
    postgres: &BenchPostgres,
    setting: PostgresSetting,
    pair: impl Fn(usize) -> TransferPair + Copy + Send + Sync + 'static,
    is_enough: impl Fn(&RoundSample) -> bool,
) -> RoundSample {
    let mut runs =
        longer_each_time(DURATION).map(|each| run(postgres, setting, pair, each).unwrap());
    runs.find(is_enough).expect("a run that shows it")
}

fn setting(isolation: IsolationLevel) -> PostgresSetting {
    let delay = Duration::from_millis(5);
    PostgresSetting { delay, isolation, extra_query: false, synchronous_commit: false }
}

#[test]
fn every_setting_commits_whole_transactions() {
    let folder = TempDir::new().unwrap();
    let postgres = loaded(&folder);
    for synchronous_commit in [true, false] {
        for (setting, _) in published(synchronous_commit) {
            let sample = run_until(&postgres, setting, apart, |sample| sample.transactions > 0);
            assert!(sample.latency.is_some(), "{setting:?}");
            if setting.isolation == IsolationLevel::ReadCommitted {
                assert_eq!(metrics(&sample), (0.0, 0.0), "{setting:?}");
            }
            // The rate is limited: eight connections each have one transaction per these delays.
            let delays = setting.delay * if setting.extra_query { 2 } else { 1 };
            assert!(sample.rate() <= 8.0 / delays.as_secs_f64(), "{setting:?}: {sample:?}");
            check_sum(&postgres, ROWS).unwrap();
        }
    }
    check_sum(&postgres, ROWS + 1).unwrap_err();
}

#[test]
fn published_figures_stand_beside_synchronous_commits() {
    let folder = TempDir::new().unwrap();
    let postgres = loaded(&folder);
    let pairs = Arc::new(TransferPairs::draw(ROWS, 1));
    for synchronous_commit in [true, false] {
        let mut cases = cases(&postgres, &pairs, synchronous_commit);
        let figures: Vec<_> = cases.iter().map(|case| case.published).collect();
        assert_eq!(figures, PUBLISHED.map(|row| synchronous_commit.then_some(row.3)));
        let mark = if synchronous_commit { "on" } else { "off" };
        assert!(cases.iter().all(|case| case.name.ends_with(mark)));
        (cases[0].run)(DURATION).unwrap();
        check_sum(&postgres, ROWS).unwrap();
    }
}

#[test]
fn conflicts_and_deadlocks_are_counted_and_tried_again() {
    let folder = TempDir::new().unwrap();
    let postgres = loaded(&folder);
    let same = |_| TransferPair { debit: 1, credit: 2 };
    let is_met = |sample: &RoundSample| sample.transactions > 0 && metrics(sample).0 > 0.0;
    let sample = run_until(&postgres, setting(IsolationLevel::Serializable), same, is_met);
    assert!(metrics(&sample).1 == 0.0, "{sample:?}");

    let crossing = |index| match index % 2 {
        0 => TransferPair { debit: 1, credit: 2 },
        _ => TransferPair { debit: 2, credit: 1 },
    };
    let is_locked = |sample: &RoundSample| metrics(sample).1 > 0.0;
    let sample = run_until(&postgres, setting(IsolationLevel::ReadCommitted), crossing, is_locked);
    let (retries, deadlocks) = metrics(&sample);
    assert!(retries >= deadlocks, "{sample:?}");
    check_sum(&postgres, ROWS).unwrap();
}

#[test]
fn the_server_says_what_it_runs_with_and_ends_with_its_value() {
    let folder = TempDir::new().unwrap();
    let postgres = BenchPostgres::start(folder.path()).unwrap();
    let settings = postgres.settings().unwrap();
    let value = |name| &settings.iter().find(|(setting, _)| *setting == name).unwrap().1;
    assert_eq!(value("fsync"), "on");
    assert_eq!(value("synchronous_commit"), "on");
    assert_eq!(value("default_transaction_isolation"), "read committed");
    assert_eq!(value("max_wal_size"), "4GB");

    let pid = postgres.pid().to_string();
    let port = postgres.config().get_ports()[0];
    let lives = || Command::new("kill").args(["-0", &pid]).output().unwrap().status.success();
    assert!(lives());
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(postgres);
    assert!(!lives());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}
