//! Runs the published transaction with many callers over a pool of few connections.
//!
//! ```text
//! BEGIN, debit │ delay │ credit │ [delay │ extra query] │ COMMIT
//! ```
//!
//! `BEGIN` travels with the first statement, like the original's driver sends it. A transaction
//! that PostgreSQL aborts because of a conflict (40001) or a deadlock (40P01) runs again until it
//! succeeds: with other accounts the work would be different.
//!
//! # Invariants
//! - Only transactions that commit within the time count. Those under way at the end are finished
//!   or abandoned, and do not count.
//! - A connection returns to the pool outside a transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use deadpool_postgres::{ClientWrapper, Manager, Pool};
use engine::clock::now;
use tokio::task::JoinSet;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls, Statement};

use super::setting::{PostgresSetting, on_off};
use crate::measure::{LatencyRecorder, RoundSample};
use crate::tps::accounts::{AMOUNT, TransferPair};

const DEBIT_SQL: &str = "UPDATE account SET balance = balance - $1 WHERE id = $2";
const CREDIT_SQL: &str = "UPDATE account SET balance = balance + $1 WHERE id = $2";
const BALANCE_SQL: &str = "SELECT balance FROM account WHERE id = $1";
/// The number of connections, as published.
const CONNECTIONS_COUNT: usize = 8;
/// The number of callers: eight for each connection, so that no connection waits for a caller. The
/// original starts all its transactions at once; they wait for a connection like these callers do.
const CALLERS_COUNT: usize = 64;

/// Runs transactions for `duration`; `pair` returns the accounts of each by its number.
pub(super) async fn run(
    config: &Config,
    setting: PostgresSetting,
    pair: impl Fn(usize) -> TransferPair + Send + Sync + 'static,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let pool = open_pool(config, setting).await?;
    let next = AtomicUsize::new(0);
    let round = Arc::new(TransferRound { pool, setting, pair, next, end: now() + duration });
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS_COUNT {
        callers.spawn(call(Arc::clone(&round)));
    }
    let mut all = TransferStats::new();
    while let Some(caller) = callers.join_next().await {
        all.merge(&caller??);
    }
    Ok(all.sample(duration))
}

/// Connects before the clock starts, prepares the statements, and checks that every connection has
/// the settings that the report will claim.
async fn open_pool(config: &Config, setting: PostgresSetting) -> anyhow::Result<Pool> {
    let mut config = config.clone();
    let isolation = setting.isolation.name();
    config.options(format!(
        "-c synchronous_commit={} -c default_transaction_isolation={}",
        on_off(setting.synchronous_commit),
        isolation.replace(' ', "\\ "),
    ));
    let pool = Pool::builder(Manager::new(config, NoTls)).max_size(CONNECTIONS_COUNT).build()?;
    let mut clients = Vec::with_capacity(CONNECTIONS_COUNT);
    for _ in 0..CONNECTIONS_COUNT {
        let client = pool.get().await?;
        PostgresTransferStatements::of(&client).await?;
        for (name, expected) in [
            ("synchronous_commit", on_off(setting.synchronous_commit)),
            ("transaction_isolation", isolation),
        ] {
            let row = client.query_one(&format!("SHOW {name}"), &[]).await?;
            let value: &str = row.try_get(0)?;
            anyhow::ensure!(value == expected, "{name} is {value}, not {expected}");
        }
        clients.push(client);
    }
    Ok(pool)
}

/// The state that the callers of one round share.
struct TransferRound<P> {
    pool: Pool,
    setting: PostgresSetting,
    pair: P,
    next: AtomicUsize,
    end: Instant,
}

/// Runs one transaction after the other, each until it succeeds.
async fn call<P: Fn(usize) -> TransferPair>(
    round: Arc<TransferRound<P>>,
) -> anyhow::Result<TransferStats> {
    let mut stats = TransferStats::new();
    loop {
        let pair = (round.pair)(round.next.fetch_add(1, Ordering::Relaxed));
        // The wait includes the waits for a connection and for locks, and the retries.
        let start = now();
        loop {
            match round.attempt(pair).await? {
                TransferOutcome::Committed => break,
                TransferOutcome::Conflict => stats.retries += 1,
                TransferOutcome::Deadlock => {
                    stats.retries += 1;
                    stats.deadlocks += 1;
                }
                TransferOutcome::TooLate => return Ok(stats),
            }
        }
        stats.transactions += 1;
        stats.latencies.record(start.elapsed());
    }
}

/// The outcome of one attempt.
enum TransferOutcome {
    Committed,
    Conflict,
    Deadlock,
    /// The round has ended, whatever the outcome of the attempt.
    TooLate,
}

impl<P> TransferRound<P> {
    /// Runs one attempt on a connection from the pool, which is usable for the next caller in any
    /// case.
    async fn attempt(&self, pair: TransferPair) -> anyhow::Result<TransferOutcome> {
        let client = self.pool.get().await.context("cannot get a connection from the pool")?;
        if now() >= self.end {
            return Ok(TransferOutcome::TooLate);
        }
        let statements = PostgresTransferStatements::of(&client).await?;
        let outcome = match self.transfer(&client, &statements, pair).await {
            Ok(()) => TransferOutcome::Committed,
            Err(error) => {
                let outcome = match error.code() {
                    Some(&SqlState::T_R_SERIALIZATION_FAILURE) => TransferOutcome::Conflict,
                    Some(&SqlState::T_R_DEADLOCK_DETECTED) => TransferOutcome::Deadlock,
                    _ => return Err(error).context("a transaction"),
                };
                client.batch_execute("ROLLBACK").await.context("ROLLBACK")?;
                outcome
            }
        };
        Ok(if now() < self.end { outcome } else { TransferOutcome::TooLate })
    }

    async fn transfer(
        &self,
        client: &ClientWrapper,
        statements: &PostgresTransferStatements,
        TransferPair { credit, debit }: TransferPair,
    ) -> Result<(), Error> {
        let values: [&(dyn ToSql + Sync); 2] = [&AMOUNT, &debit];
        // Polled in this order, both are sent before either is answered.
        let (begun, debited) = tokio::join!(
            biased;
            client.batch_execute("BEGIN"),
            client.execute(&statements.debit, &values),
        );
        begun?;
        debited?;
        self.delay().await;
        client.execute(&statements.credit, &[&AMOUNT, &credit]).await?;
        if self.setting.extra_query {
            self.delay().await;
            client.query_one(&statements.balance, &[&debit]).await?;
        }
        client.batch_execute("COMMIT").await
    }

    async fn delay(&self) {
        // The timer counts in milliseconds and would round zero up to one.
        if !self.setting.delay.is_zero() {
            tokio::time::sleep(self.setting.delay).await;
        }
    }
}

/// The statements, which are prepared once on each connection.
struct PostgresTransferStatements {
    balance: Statement,
    credit: Statement,
    debit: Statement,
}

impl PostgresTransferStatements {
    async fn of(client: &ClientWrapper) -> Result<Self, Error> {
        Ok(Self {
            balance: client.prepare_cached(BALANCE_SQL).await?,
            credit: client.prepare_cached(CREDIT_SQL).await?,
            debit: client.prepare_cached(DEBIT_SQL).await?,
        })
    }
}

/// The results of one caller, or of all.
struct TransferStats {
    transactions: u64,
    retries: u64,
    deadlocks: u64,
    latencies: LatencyRecorder,
}

impl TransferStats {
    fn new() -> Self {
        Self { transactions: 0, retries: 0, deadlocks: 0, latencies: LatencyRecorder::new() }
    }

    fn merge(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.retries += other.retries;
        self.deadlocks += other.deadlocks;
        self.latencies.merge(&other.latencies);
    }
    fn sample(&self, elapsed: Duration) -> RoundSample {
        let mut sample = RoundSample::new(self.transactions, elapsed);
        sample.latency = self.latencies.latency();
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        sample
            .metrics
            .extend([("retries", self.retries as f64), ("deadlocks", self.deadlocks as f64)]);
        sample
    }
}
