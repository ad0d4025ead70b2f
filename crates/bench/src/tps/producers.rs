//! Runs many callers of the engine: tasks or threads that each submit a transaction, wait for its
//! completion, and submit the next.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use engine::clock::now;
use engine::{
    Database, DatabaseStats, Durability, Error, StaticStatement, Transaction, WriteFuture,
};
use tokio::runtime::Runtime;

use super::accounts::{
    AMOUNT, BALANCE_SQL, CREDIT_SQL, DEBIT_SQL, TransferPair, TransferPairs, chance,
};
use crate::format::counted;
use crate::measure::{LatencyRecorder, LatencyStats, RoundSample};

static CREDIT: StaticStatement = StaticStatement::new(CREDIT_SQL);
static DEBIT: StaticStatement = StaticStatement::new(DEBIT_SQL);
static BALANCE: StaticStatement = StaticStatement::new(BALANCE_SQL);

/// The work of the callers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProducerLoad {
    /// The number of tasks, each with one transaction under way.
    pub(crate) waiting: usize,
    pub(crate) durability: Durability,
    /// The number of point reads on the caller's thread before each write.
    pub(crate) reads: usize,
    /// The number of requests, in a million, that only read.
    pub(crate) read_only_ppm: u64,
    /// The number of transactions, in a million, that fail after their first write.
    pub(crate) failing_ppm: u64,
}

impl ProducerLoad {
    /// Returns a load of writes only, none failing.
    pub(crate) const fn of(waiting: usize, durability: Durability) -> Self {
        Self { waiting, durability, reads: 0, read_only_ppm: 0, failing_ppm: 0 }
    }
}

/// Only one in this many transactions is timed, so that the clock costs the producers little.
const TIMED_EVERY: usize = 8;

/// The counters that all tasks share.
struct ProducerCounters {
    is_over: AtomicBool,
    is_counting: AtomicBool,
    /// The number of requests that only read.
    read_only: AtomicU64,
    /// Recorders of waits: few, so that they stay in the processor's cache, but more than there
    /// are threads.
    latencies: [Mutex<LatencyRecorder>; 8],
}

impl ProducerCounters {
    fn record(&self, task: usize, wait: Duration) {
        let shard = &self.latencies[task % self.latencies.len()];
        shard.lock().expect("recording does not panic").record(wait);
    }

    fn latency(&self) -> Option<LatencyStats> {
        let mut all = LatencyRecorder::new();
        for shard in &self.latencies {
            all.merge(&shard.lock().expect("recording does not panic"));
        }
        all.latency()
    }
}

/// Runs the load for about `duration` on the runtime's threads. The rate counts requests; if some
/// of them only read, a metric counts those that wrote.
pub(crate) fn run(
    runtime: &Runtime,
    database: &Arc<Database>,
    pairs: &Arc<TransferPairs>,
    load: ProducerLoad,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let shared = Arc::new(ProducerCounters {
        is_over: AtomicBool::new(false),
        is_counting: AtomicBool::new(false),
        read_only: AtomicU64::new(0),
        latencies: std::array::from_fn(|_| Mutex::new(LatencyRecorder::new())),
    });
    let stride = (PAIRS_BETWEEN_TASKS / load.waiting).max(1);
    runtime.block_on(async {
        let tasks: Vec<_> = (0..load.waiting)
            .map(|task| {
                let (database, pairs) = (Arc::clone(database), Arc::clone(pairs));
                let mut producer = LoadProducer { task, next: task * stride, load };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { producer.run(&database, &pairs, &shared).await })
            })
            .collect();
        tokio::time::sleep(duration / 10).await;
        let (before, start) = (database.stats(), now());
        shared.is_counting.store(true, Ordering::Relaxed);
        tokio::time::sleep(duration).await;
        shared.is_counting.store(false, Ordering::Relaxed);
        let (after, elapsed) = (database.stats(), start.elapsed());
        shared.is_over.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await??;
        }
        let read_only = shared.read_only.load(Ordering::Relaxed);
        let ran = |stats: &DatabaseStats| stats.transactions + stats.failed;
        let mut sample = RoundSample::new(ran(&after) - ran(&before) + read_only, elapsed);
        sample.latency = shared.latency();
        if read_only > 0 {
            let writes = RoundSample::new(ran(&after) - ran(&before), elapsed);
            sample.metrics.push(("writes/s", writes.rate()));
        }
        Ok(sample)
    })
}

/// Runs the load on plain threads, which block until each transaction completes.
pub(crate) fn run_threads(
    database: &Arc<Database>,
    pairs: &Arc<TransferPairs>,
    load: ProducerLoad,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let ProducerLoad { waiting, durability, .. } = load;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for index in 0..waiting {
            let (is_over, database) = (&is_over, &database);
            scope.spawn(move || {
                let mut next = index * (PAIRS_BETWEEN_TASKS / waiting);
                while !is_over.load(Ordering::Relaxed)
                    && transfer(database, durability, pairs.get(next), false).wait().is_ok()
                {
                    next += 1;
                }
            });
        }
        wait(duration / 10);
        let (before, start) = (database.stats(), now());
        wait(duration);
        let (after, elapsed) = (database.stats(), start.elapsed());
        is_over.store(true, Ordering::Relaxed);
        let failed = counted(after.failed, "transaction", "transactions");
        anyhow::ensure!(after.failed == 0, "{failed} failed");
        Ok(RoundSample::new(after.transactions - before.transactions, elapsed))
    })
}

#[expect(clippy::disallowed_methods, reason = "the measured time passes")]
pub(crate) fn wait(duration: Duration) {
    thread::sleep(duration);
}

/// The distance between the first pairs of all tasks, so that the tasks together use all pairs.
const PAIRS_BETWEEN_TASKS: usize = 1 << 20;

struct LoadProducer {
    task: usize,
    next: usize,
    load: ProducerLoad,
}

impl LoadProducer {
    async fn run(
        &mut self,
        database: &Database,
        pairs: &TransferPairs,
        shared: &ProducerCounters,
    ) -> Result<(), Error> {
        while !shared.is_over.load(Ordering::Relaxed) {
            let index = self.next;
            self.next += 1;
            let submitted = index.is_multiple_of(TIMED_EVERY).then(now);
            let is_read_only = self.request(database, pairs.get(index), index).await?;
            if !shared.is_counting.load(Ordering::Relaxed) {
                continue;
            }
            if is_read_only {
                shared.read_only.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(submitted) = submitted {
                shared.record(self.task, submitted.elapsed());
            }
        }
        Ok(())
    }

    /// Runs one request; returns `true` if it only read.
    async fn request(
        &self,
        database: &Database,
        pair: TransferPair,
        index: usize,
    ) -> Result<bool, Error> {
        let ProducerLoad { durability, reads, read_only_ppm, failing_ppm, .. } = self.load;
        if reads > 0 {
            database.read(|db| read(db, pair, reads))?;
        }
        if chance(index, read_only_ppm) {
            return Ok(true);
        }
        let fails = chance(index, failing_ppm);
        match transfer(database, durability, pair, fails).await {
            Err(Error::Sqlite { .. }) if fails => Ok(false),
            answer => answer.map(|()| false),
        }
    }
}

fn read(db: &Transaction<'_>, pair: TransferPair, count: usize) -> Result<(), Error> {
    let mut statement = db.statement(&BALANCE)?;
    for _ in 0..count {
        statement.query_row([pair.credit], |row| row.get::<_, i64>(0))?;
    }
    Ok(())
}

pub(crate) fn transfer(
    database: &Database,
    durability: Durability,
    pair: TransferPair,
    fails: bool,
) -> WriteFuture<(), Error> {
    database.write(durability, move |db| {
        db.statement(&CREDIT)?.execute((AMOUNT, pair.credit))?;
        if fails {
            return Err(rusqlite::Error::InvalidQuery.into());
        }
        db.statement(&DEBIT)?.execute((AMOUNT, pair.debit))?;
        Ok(())
    })
}
