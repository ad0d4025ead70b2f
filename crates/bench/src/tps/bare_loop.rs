//! Calls SQLite directly from one thread with prepared statements: this is the bare cost of the
//! work, and the cost in a program without an engine.

use std::time::Duration;

use engine::clock::now;
use rusqlite::{Connection, Statement};

use super::accounts::{
    AMOUNT, BALANCE_SQL, CREDIT_SQL, DEBIT_SQL, TransferPair, TransferPairs, chance,
};
use crate::measure::RoundSample;

/// The metric for the longest commit, with the transactions in it.
pub(crate) const LONGEST: &str = "longest batch, ms";

/// The work of a bare loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareLoop {
    /// Transactions of one commit.
    pub(crate) batch: usize,
    /// Whether a savepoint surrounds each transaction.
    pub(crate) has_savepoints: bool,
    /// The number of point reads before each transaction.
    pub(crate) reads: usize,
    /// The number of transactions, in a million, that fail after their first write. Requires the
    /// savepoints.
    pub(crate) failing_ppm: u64,
}

impl BareLoop {
    /// Returns a loop with `batch` transactions per commit and no further work: the baseline.
    pub(crate) const fn with_batch(batch: usize) -> Self {
        Self { batch, has_savepoints: false, reads: 0, failing_ppm: 0 }
    }

    /// Runs for about `duration`, from the transaction number `first` on.
    pub(crate) fn run(
        self,
        db: &Connection,
        pairs: &TransferPairs,
        first: usize,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let mut statements = TransferStatements::prepare(db)?;
        let mut index = first;
        // The caches of a process that has just opened the file are cold.
        let warm = now() + duration / 10;
        while now() < warm {
            self.commit(&mut statements, pairs, &mut index)?;
        }
        let (first, start) = (index, now());
        let (mut before, mut longest) = (start, Duration::ZERO);
        while before - start < duration {
            self.commit(&mut statements, pairs, &mut index)?;
            let after = now();
            longest = longest.max(after - before);
            before = after;
        }
        let mut sample = RoundSample::new((index - first) as u64, before - start);
        sample.metrics.push((LONGEST, longest.as_secs_f64() * 1_000.0));
        Ok(sample)
    }

    fn commit(
        self,
        statements: &mut TransferStatements<'_>,
        pairs: &TransferPairs,
        index: &mut usize,
    ) -> rusqlite::Result<()> {
        statements.begin.execute([])?;
        for _ in 0..self.batch {
            let pair = pairs.get(*index);
            for _ in 0..self.reads {
                statements.balance.query_row([pair.credit], |row| row.get::<_, i64>(0))?;
            }
            match (self.has_savepoints, chance(*index, self.failing_ppm)) {
                (false, _) => statements.transfer(pair)?,
                (true, false) => {
                    statements.savepoint.execute([])?;
                    statements.transfer(pair)?;
                    statements.release.execute([])?;
                }
                (true, true) => {
                    statements.savepoint.execute([])?;
                    statements.credit.execute((AMOUNT, pair.credit))?;
                    statements.rollback_to.execute([])?;
                    statements.release.execute([])?;
                }
            }
            *index += 1;
        }
        statements.commit.execute([])?;
        Ok(())
    }
}

struct TransferStatements<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    savepoint: Statement<'c>,
    rollback_to: Statement<'c>,
    release: Statement<'c>,
    credit: Statement<'c>,
    debit: Statement<'c>,
    balance: Statement<'c>,
}

impl<'c> TransferStatements<'c> {
    fn prepare(db: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: db.prepare("BEGIN IMMEDIATE")?,
            commit: db.prepare("COMMIT")?,
            savepoint: db.prepare("SAVEPOINT one")?,
            rollback_to: db.prepare("ROLLBACK TO one")?,
            release: db.prepare("RELEASE one")?,
            credit: db.prepare(CREDIT_SQL)?,
            debit: db.prepare(DEBIT_SQL)?,
            balance: db.prepare(BALANCE_SQL)?,
        })
    }

    fn transfer(&mut self, pair: TransferPair) -> rusqlite::Result<()> {
        self.credit.execute((AMOUNT, pair.credit))?;
        self.debit.execute((AMOUNT, pair.debit)).map(drop)
    }
}
