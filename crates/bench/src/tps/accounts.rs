//! Defines the published workload: a table of accounts, and transactions that move money between
//! two of them.
//!
//! The accounts of a transaction follow the published draw, by which 0.05 % of the accounts get
//! 99.95 % of the draws. The sum of all balances never changes, so it shows whether a transaction
//! was half done.
//!
//! # Not here
//! - How the transactions are run → the other modules of `tps`.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;

use crate::disk;

/// The initial balance of each account, as published.
pub(crate) const BALANCE: i64 = 1_000_000_000;

/// The amount that one transaction moves.
pub(crate) const AMOUNT: i64 = 1;

pub(crate) const SCHEMA: &str = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)";

pub(crate) const CREDIT_SQL: &str = "UPDATE account SET balance = balance + ?1 WHERE id = ?2";

pub(crate) const DEBIT_SQL: &str = "UPDATE account SET balance = balance - ?1 WHERE id = ?2";

pub(crate) const BALANCE_SQL: &str = "SELECT balance FROM account WHERE id = ?1";

/// The share of the draws that goes to the share `1 - HOT_DRAWS` of the accounts.
const HOT_DRAWS: f64 = 0.999_5;

/// The number of drawn pairs, which is enough that a round does not repeat a draw; they take 64
/// MB.
const PAIRS_COUNT: usize = 1 << 22;

/// Rows of one transaction while loading: a progress step.
const ROWS_PER_STEP: i64 = 1_000_000;

/// The unit of the rates.
pub(crate) const UNIT: &str = "transactions";

/// The accounts of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferPair {
    pub(crate) credit: i64,
    pub(crate) debit: i64,
}

/// Transactions that are drawn before the clock runs, so that every candidate runs the same ones
/// and none pays for the drawing.
#[derive(Debug)]
pub(crate) struct TransferPairs(Vec<TransferPair>);

impl TransferPairs {
    /// Draws pairs from a table of `rows` accounts, numbered from 1.
    pub(crate) fn draw(rows: i64, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut next = || account(rows, random.random());
        Self((0..PAIRS_COUNT).map(|_| TransferPair { credit: next(), debit: next() }).collect())
    }

    /// Draws pairs such that every account is equally likely.
    pub(crate) fn draw_evenly(rows: i64, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut next = || random.random_range(1..=rows);
        Self((0..PAIRS_COUNT).map(|_| TransferPair { credit: next(), debit: next() }).collect())
    }

    /// Returns the transaction of a number; they repeat after four million.
    pub(crate) fn get(&self, index: usize) -> TransferPair {
        self.0[index % PAIRS_COUNT]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TransferPair> {
        self.0.iter()
    }
}

/// Returns true for `ppm` of a million indexes, spread evenly but without a regular period.
pub(crate) fn chance(index: usize, ppm: u64) -> bool {
    let hash = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ppm > 0 && (hash * 1_000_000) >> 32 < ppm
}

/// Returns the account for a uniform draw in 0..1, by the published program's formula: nearly all
/// draws are in the first half-thousandth, decreasing exponentially, and the rest is spread over
/// all accounts.
fn account(rows: i64, uniform: f64) -> i64 {
    let power = (1.0 - HOT_DRAWS).ln() / HOT_DRAWS.ln();
    let share = f64::midpoint(uniform.powf(power), 1.0 - (1.0 - uniform).powf(power.recip()));
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "counts of rows are far below 2^52, and the share is below 1"
    )]
    let account = (rows as f64 * share) as i64;
    1 + account.min(rows - 1)
}

/// Fills an empty database with `rows` accounts, then moves the WAL into the file.
pub(crate) fn load(db: &Connection, rows: i64, bar: &ProgressBar) -> anyhow::Result<()> {
    db.execute_batch(SCHEMA).context("creating the accounts")?;
    let sql = format!(
        "WITH RECURSIVE number(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
         INSERT INTO account SELECT n, {BALANCE} FROM number"
    );
    let mut insert = db.prepare(&sql)?;
    bar.set_length(rows.unsigned_abs());
    bar.set_position(0);
    let mut first = 1;
    while first <= rows {
        let last = rows.min(first + ROWS_PER_STEP - 1);
        insert.execute((first, last)).context("loading accounts")?;
        bar.set_position(last.unsigned_abs());
        first = last + 1;
    }
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).context("checkpoint")?;
    Ok(())
}

/// Returns the disk space for a table of `rows` accounts and for cases of this duration: about 15
/// bytes a row in the file, as measured, and a WAL, which never grew above half a GiB.
pub(crate) fn disk_bytes(rows: i64, duration: Duration) -> u64 {
    const MADE_BYTES: u64 = 32 << 20;
    const MAX_WAL_BYTES: u64 = 512 << 20;
    rows.unsigned_abs() * 16 + MAX_WAL_BYTES.min(MADE_BYTES + disk::written_in(duration))
}

/// Returns an error if a transaction was half done.
pub(crate) fn check_sum(path: &Path, db: &Connection, rows: i64) -> anyhow::Result<()> {
    let sum: i64 = db.query_row("SELECT sum(balance) FROM account", [], |row| row.get(0))?;
    anyhow::ensure!(
        sum == rows * BALANCE,
        "{}: the sum of the balances is {sum}, not {}",
        path.display(),
        rows * BALANCE
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_accounts_get_nearly_all_draws() {
        for rows in [100_000, 1_000_000, 1_000_000_000] {
            let pairs = TransferPairs::draw(rows, 1);
            let hot = rows / 2_000;
            let is_hot = |account: i64| usize::from(account <= hot);
            let in_hot: usize = pairs.iter().map(|p| is_hot(p.credit) + is_hot(p.debit)).sum();
            #[expect(clippy::cast_precision_loss, reason = "a count of draws")]
            let share = in_hot as f64 / (2 * PAIRS_COUNT) as f64;
            assert!((share - HOT_DRAWS).abs() < 0.000_2, "{rows} rows: {share}");
            assert!(pairs.iter().all(|p| p.credit >= 1 && p.credit <= rows && p.debit >= 1));
        }
    }

    #[test]
    fn loading_gives_every_account_its_balance() {
        let db = Connection::open_in_memory().unwrap();
        load(&db, 1_234, &ProgressBar::hidden()).unwrap();
        check_sum(Path::new("memory"), &db, 1_234).unwrap();
        db.execute("UPDATE account SET balance = balance + 1 WHERE id = 1234", []).unwrap();
        check_sum(Path::new("memory"), &db, 1_234).unwrap_err();
    }
}
