//! `warren bench checkpoint`: measures the cost for writers of copying the WAL back into the file.
//!
//! The work is that of `bench tps`: transactions of two updates on a table of accounts, in a plain
//! loop and through the engine.
//!
//! # Invariants
//! - A case begins with an empty WAL, or with one that holds a single commit which the long reader
//!   sees: SQLite deletes the WAL when the last connection closes.
//! - The interval is read back from the connection that writes.

use std::time::Duration;

use anyhow::{Context, ensure};
use engine::Durability::Os;
use engine::{Cipher, ScratchFolder};
use indicatif::ProgressBar;
use rusqlite::Connection;

use super::execute_plan::{read_setting, set};
use super::plan::SampleValue;
use super::{MeasureOptions, MeasureTimeBudget};
use crate::disk;
use crate::format::counted;
use crate::machine::MachineInfo;
use crate::measure::RoundSample;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::suite::{BenchCase, BenchSection, run as run_section};
use crate::tps::accounts::{self, BALANCE_SQL};
use crate::tps::bare_loop::{BareLoop, LONGEST};
use crate::tps::fixture::{TpsFixture, wal_megabytes};
use crate::tps::producers::ProducerLoad;

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct CheckpointBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// The number of rows of the table.
    pub rows: i64,
    /// Transactions per commit of the plain loop, and callers of the engine that wait at the same
    /// time.
    pub batch: usize,
    /// The cipher of the table; `None` for no encryption.
    pub cipher: Option<Cipher>,
}

const TITLE: &str = "Warren: the cost of checkpoints";
const LEAD: &str = "Writes continuously in WAL mode with synchronous NORMAL, and measures what it \
    costs to copy the WAL back into the file. The plain loop leaves this to SQLite, which copies \
    within a commit whenever the WAL reaches the given number of pages (wal_autocheckpoint; 0: \
    never). Warren's engine copies on another connection while the writer continues. A long reader \
    keeps its first snapshot during the whole run, so the WAL can be copied, but not restarted. \
    The slowest commit is the longest time that the loop, or a caller of the engine, waited for a \
    commit. The largest WAL is the size of the WAL file at the end; it never shrinks in these \
    runs.";

/// The sizes of the WAL, in pages, at which SQLite copies it. SQLite's default is the first,
/// because the others are compared with it.
const INTERVALS: [u32; 4] = [1_000, 0, 100, 10_000];
const SLOWEST: &str = "slowest commit, ms";

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &CheckpointBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let CheckpointBenchPlan { method, rows, batch, cipher } = plan;
    ensure!(*batch > 0, "--batch must be greater than 0");
    let what = format!("{rows} rows and a growing WAL");
    let wal = disk::written_in(method.duration);
    let table = accounts::disk_bytes(*rows, method.duration);
    disk::check(&method.folder, table.saturating_add(wal), &what)?;
    let scratch =
        ScratchFolder::new(&method.folder, "bench").context("cannot use the work directory")?;
    bar.set_message("creating the table");
    let fixture = crate::tps::load(scratch.path(), *cipher, *rows, bar)?;
    let mut budget = MeasureTimeBudget::new(method, 2);
    let mut tables = Vec::new();
    for (name, is_read) in [("checkpoint", false), ("checkpoint-long-reader", true)] {
        let readers =
            if is_read { "with a reader that holds its snapshot" } else { "without a reader" };
        let section = BenchSection {
            name: name.to_owned(),
            unit: "transactions",
            title: format!(
                "{} per commit, or as many callers of Warren; {readers}",
                counted(batch, "transaction", "transactions")
            ),
            cases: cases(&fixture, *batch, is_read),
        };
        tables.push(run_section(section, &budget.next(), bar)?);
        fixture.check_sum()?;
    }
    bar.finish_and_clear();
    let mut settings = vec![
        ReportSetting::new("rows", rows.to_string()),
        ReportSetting::new("cipher", cipher.map_or("none", Cipher::name)),
    ];
    settings.extend(method.settings());
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "checkpoint".into(),
        machine: MachineInfo::here(&method.folder),
        command: method.command.clone(),
        settings,
        configurations: Vec::new(),
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn cases(fixture: &TpsFixture, batch: usize, is_read: bool) -> Vec<BenchCase<'_>> {
    let mut cases: Vec<BenchCase<'_>> = INTERVALS
        .into_iter()
        .map(|interval| {
            let default = if interval == INTERVALS[0] { " (the default)" } else { "" };
            let name = format!("autocheckpoint {interval}{default}");
            BenchCase::new(name, move |duration| plain(fixture, batch, interval, is_read, duration))
                .at("autocheckpoint", interval, "pages")
        })
        .collect();
    let reads = |reads| ProducerLoad { reads, ..ProducerLoad::of(batch, Os) };
    for (name, load) in [("Warren", reads(0)), ("Warren, 3 reads and a write", reads(3))] {
        cases.push(BenchCase::new(name, move |duration| {
            through_engine(fixture, load, is_read, duration)
        }));
    }
    cases
}

fn plain(
    fixture: &TpsFixture,
    batch: usize,
    interval: u32,
    is_read: bool,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let reader = is_read.then(|| open_snapshot(fixture)).transpose()?;
    let db = fixture.connection()?;
    set(&db, &[("wal_autocheckpoint".to_owned(), interval.to_string())])?;
    let found = read_setting(&db, "wal_autocheckpoint")?;
    ensure!(
        found == SampleValue::Integer(interval.into()),
        "wal_autocheckpoint is {found:?}, not {interval}"
    );
    let mut sample = BareLoop::with_batch(batch).run(&db, &fixture.pairs, 0, duration)?;
    let longest = sample.metrics.iter().find(|(name, _)| *name == LONGEST).map(|(_, ms)| *ms);
    let longest = longest.context("the loop reported no longest batch")?;
    sample.metrics = vec![(SLOWEST, longest), ("largest WAL, MB", wal_megabytes(&fixture.path))];
    drop(db);
    drop(reader);
    Ok(sample)
}

fn through_engine(
    fixture: &TpsFixture,
    load: ProducerLoad,
    is_read: bool,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let reader = is_read.then(|| open_snapshot(fixture)).transpose()?;
    let mut sample = fixture.engine(load, duration)?;
    // No transaction ended in time, so the suite repeats the measurement with a longer duration.
    let Some(latency) = sample.latency.take() else {
        return Ok(RoundSample::new(0, sample.elapsed));
    };
    sample.metrics.push((SLOWEST, latency.max_us / 1e3));
    drop(reader);
    Ok(sample)
}

/// Opens a connection that reads the same snapshot until it is closed. It writes a commit first: a
/// reader that finds an empty WAL would prevent all of it from being copied.
fn open_snapshot(fixture: &TpsFixture) -> anyhow::Result<Connection> {
    let db = fixture.connection()?;
    db.execute("UPDATE account SET balance = balance WHERE id = 1", [])?;
    db.execute_batch("BEGIN")?;
    db.query_row(BALANCE_SQL, [1], |_| Ok(())).context("the long reader cannot read")?;
    Ok(db)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::longer_each_time;

    const FIRST: Duration = Duration::from_millis(300);

    fn metric(sample: &RoundSample, name: &str) -> f64 {
        sample.metrics.iter().find(|(of, _)| *of == name).unwrap().1
    }

    #[test]
    fn a_wal_stays_short_unless_it_is_never_copied_or_somebody_reads() {
        let folder = tempfile::tempdir().unwrap();
        let fixture =
            crate::tps::load(folder.path(), None, 50_000, &ProgressBar::hidden()).unwrap();
        let largest = |interval, is_read, duration| {
            let sample = plain(&fixture, 10, interval, is_read, duration).unwrap();
            assert!(sample.transactions > 0 && metric(&sample, SLOWEST) > 0.0, "{sample:?}");
            assert!(!folder.path().join("accounts-50000-none.db-wal").exists());
            metric(&sample, "largest WAL, MB")
        };
        let short = largest(100, false, FIRST);
        assert!(short < 1.0, "{short} MB");
        for (interval, is_read) in [(0, false), (100, true)] {
            let is_long = |duration| largest(interval, is_read, duration) > 2.0 * short;
            assert!(longer_each_time(FIRST).any(is_long), "{interval}: {short} MB without");
        }
        let ours = through_engine(&fixture, ProducerLoad::of(10, Os), true, FIRST).unwrap();
        assert!(metric(&ours, SLOWEST) > 0.0 && ours.latency.is_none(), "{ours:?}");
        fixture.check_sum().unwrap();
    }
}
