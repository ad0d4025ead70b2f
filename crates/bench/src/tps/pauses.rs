//! Measures pauses: the longest waits of a reader and of a caller while the WAL is moved into the
//! file, when every transaction changes different pages.
//!
//! With evenly drawn keys nearly each update writes its own page, so the WAL grows as fast as it
//! can, and so does the work of a checkpoint to copy and to flush it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::Durability::{self, Disk, Os};
use engine::clock::now;
use engine::{Database, Error, StaticStatement};

use super::accounts::{BALANCE_SQL, TransferPairs, UNIT};
use super::bare_loop::BareLoop;
use super::fixture::TpsFixture;
use super::producers::ProducerLoad;
use crate::measure::{LatencyRecorder, RoundSample};
use crate::suite::{BenchCase, BenchSection};

const WAITING: usize = 1_000;
const BATCH: usize = 1_000;

/// The pause between two reads of the measured reader.
const READ_INTERVAL: Duration = Duration::from_micros(300);

static BALANCE: StaticStatement = StaticStatement::new(BALANCE_SQL);

/// Returns the section with callers that use evenly drawn keys, and one thread that reads a row
/// regularly.
pub(super) fn section(fixture: &TpsFixture) -> BenchSection<'static> {
    let pairs = Arc::new(TransferPairs::draw_evenly(fixture.rows, super::fixture::SEED));
    let fixture = TpsFixture { pairs, ..fixture.clone() };
    let bare = fixture.clone();
    let loop_of = move |duration| bare.bare(BareLoop::with_batch(BATCH), "NORMAL", duration);
    let mut cases = vec![BenchCase::new("bare loop, 1,000 per commit", loop_of)];
    for durability in [Os, Disk] {
        let fixture = fixture.clone();
        let name = format!("Warren, {durability:?}");
        cases.push(BenchCase::new(name, move |duration| watched(&fixture, durability, duration)));
    }
    BenchSection {
        name: "pauses".to_owned(),
        unit: UNIT,
        title: "evenly drawn keys, a thousand callers and one reader: the longest waits while the \
                WAL is copied into the file"
            .to_owned(),
        cases,
    }
}

fn watched(
    fixture: &TpsFixture,
    durability: Durability,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    fixture.with_database(|database| {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| read_until(database, &fixture.pairs, &is_over));
            let sample = fixture.sample(database, ProducerLoad::of(WAITING, durability), duration);
            is_over.store(true, Ordering::Relaxed);
            let reads = reader.join().expect("a reader does not panic")?;
            let mut sample = sample?;
            let stats = database.stats();
            let ms = |pause: Duration| pause.as_secs_f64() * 1e3;
            let resets = u32::try_from(stats.checkpoint_pauses).unwrap_or(u32::MAX);
            sample.metrics.push(("WAL resets", f64::from(resets)));
            sample.metrics.push(("reads held, ms", ms(stats.read_pause_max)));
            if let Some(latency) = reads.latency() {
                sample.metrics.push(("read at P99, ms", latency.p99_us / 1e3));
                sample.metrics.push(("longest read, ms", latency.max_us / 1e3));
            }
            if let Some(latency) = sample.latency {
                sample.metrics.push(("longest commit, ms", latency.max_us / 1e3));
            }
            Ok(sample)
        })
    })
}

fn read_until(
    database: &Database,
    pairs: &TransferPairs,
    is_over: &AtomicBool,
) -> Result<LatencyRecorder, Error> {
    let mut reads = LatencyRecorder::new();
    for index in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let start = now();
        let id = pairs.get(index).credit;
        database.read(|db| {
            db.statement(&BALANCE)?.query_row([id], |row| row.get::<_, i64>(0)).map_err(Error::from)
        })?;
        reads.record(start.elapsed());
        thread::park_timeout(READ_INTERVAL);
    }
    Ok(reads)
}
