//! Compares PostgreSQL with Warren: runs the published transaction on the benchmark's own server
//! over a pool of connections.
//!
//! The original reaches PostgreSQL over a network; a pause between the statements stands for it.
//! The pause is asynchronous and holds a connection, and the locks of the transaction, but no
//! thread.
//!
//! # Invariants
//! - Every candidate runs the same transactions on the same rows, with the durability that is in
//!   its name, which each connection reads back before the clock starts.
//! - The sum of the balances never changes: [`check_sum`].
//!
//! # Not here
//! - The server → `crate::postgres`.
//! - A transaction and its retries → `transfers.rs`.

mod setting;
#[cfg(test)]
mod tests;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use tokio_postgres::types::ToSql;

use self::setting::{IsolationLevel, PostgresSetting};
use super::accounts::{BALANCE, TransferPair, TransferPairs};
use crate::disk;
use crate::measure::RoundSample;
use crate::postgres::{BenchPostgres, MAX_WAL_BYTES};
use crate::suite::BenchCase;

/// The table has 64-bit integers, like SQLite's.
const SCHEMA: &str = "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT)";
const LOAD_SQL: &str = "INSERT INTO account SELECT n, $3 FROM generate_series($1, $2::BIGINT) n";
const SUM_SQL: &str = "SELECT coalesce(sum(balance), 0)::BIGINT FROM account";
/// Rows of one transaction while loading: a progress step.
const ROWS_PER_STEP: i64 = 1_000_000;
/// The published rows: milliseconds between two statements, isolation, whether there is an extra
/// query, transactions per second.
const PUBLISHED: [(u64, IsolationLevel, bool, f64); 5] = [
    (0, IsolationLevel::ReadCommitted, false, 13_756.0),
    (5, IsolationLevel::ReadCommitted, false, 1_214.0),
    (10, IsolationLevel::ReadCommitted, false, 702.0),
    (10, IsolationLevel::Serializable, false, 660.0),
    (10, IsolationLevel::Serializable, true, 348.0),
];

impl IsolationLevel {
    /// Returns the level's name in PostgreSQL.
    fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::Serializable => "serializable",
        }
    }
}

/// Creates the table with `rows` accounts, and completes all maintenance before the measurement.
pub(super) fn load(postgres: &BenchPostgres, rows: i64, bar: &ProgressBar) -> anyhow::Result<()> {
    bar.set_length(rows.unsigned_abs());
    bar.set_position(0);
    postgres.runtime().block_on(async {
        let client = postgres.connect().await?;
        client.batch_execute(SCHEMA).await.context("creating the accounts")?;
        let insert = client.prepare(LOAD_SQL).await?;
        let mut first = 1;
        while first <= rows {
            let last = rows.min(first + ROWS_PER_STEP - 1);
            let values: [&(dyn ToSql + Sync); 3] = [&first, &last, &BALANCE];
            client.execute(&insert, &values).await.context("loading accounts")?;
            bar.set_position(last.unsigned_abs());
            first = last + 1;
        }
        client.batch_execute("VACUUM ANALYZE account").await.context("VACUUM ANALYZE")?;
        client.batch_execute("CHECKPOINT").await.context("CHECKPOINT")
    })
}

/// Runs transactions for `duration`; `pair` returns the accounts of each by its number.
pub(super) fn run(
    postgres: &BenchPostgres,
    setting: PostgresSetting,
    pair: impl Fn(usize) -> TransferPair + Send + Sync + 'static,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    postgres.runtime().block_on(transfers::run(postgres.config(), setting, pair, duration))
}

/// Returns an error if a transaction was half done.
pub(super) fn check_sum(postgres: &BenchPostgres, rows: i64) -> anyhow::Result<()> {
    let sum: i64 = postgres.runtime().block_on(async {
        let row = postgres.connect().await?.query_one(SUM_SQL, &[]).await?;
        anyhow::Ok(row.try_get(0)?)
    })?;
    let expected = rows * BALANCE;
    anyhow::ensure!(
        sum == expected,
        "PostgreSQL: the sum of the balances is {sum}, not {expected}"
    );
    Ok(())
}

/// Returns the published rows, in the published order. The published figures appear only with
/// `synchronous_commit`, with which they were measured.
pub(super) fn cases<'a>(
    postgres: &'a BenchPostgres,
    pairs: &'a Arc<TransferPairs>,
    synchronous_commit: bool,
) -> Vec<BenchCase<'a>> {
    let cases = published(synchronous_commit).map(|(setting, figure)| {
        let name = format!("PostgreSQL, {}", setting.name());
        let case = BenchCase::new(name, move |duration| {
            let pairs = Arc::clone(pairs);
            run(postgres, setting, move |index| pairs.get(index), duration)
        });
        if synchronous_commit { case.published(figure) } else { case }
    });
    cases.into()
}

/// Returns the published settings, each with its figure.
fn published(synchronous_commit: bool) -> [(PostgresSetting, f64); PUBLISHED.len()] {
    PUBLISHED.map(|(delay_ms, isolation, extra_query, figure)| {
        let delay = Duration::from_millis(delay_ms);
        (PostgresSetting { delay, isolation, extra_query, synchronous_commit }, figure)
    })
}

/// Returns the disk space for a table of `rows` accounts and for a run: 67 bytes a row, as
/// measured on a million, of which 45 are the row and 22 its key; an empty server's files; and, as
/// far as cases that take `measured` in total can write them, the WAL and row versions that wait
/// for VACUUM.
pub(super) fn disk_bytes(rows: i64, measured: Duration) -> u64 {
    const EMPTY_BYTES: u64 = 128 << 20;
    const MAX_VERSIONS_BYTES: u64 = 1 << 30;
    let added = (MAX_WAL_BYTES + MAX_VERSIONS_BYTES).min(disk::written_in(measured));
    rows.unsigned_abs() * 67 + EMPTY_BYTES + added
}

/// Returns how long all cases take, in `rounds` rounds of this duration.
pub(super) fn measured(duration: Duration, rounds: usize) -> Duration {
    let cases = rounds.saturating_mul(2 * PUBLISHED.len());
    duration.saturating_mul(u32::try_from(cases).unwrap_or(u32::MAX))
}
