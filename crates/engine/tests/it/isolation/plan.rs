//! One random transaction: its effects on the database and on the model, and the result that its
//! caller must get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Error, StaticStatement, Transaction};
use rand::RngExt;
use rand::rngs::StdRng;

use super::model::{ACCOUNTS, SLOTS, TableModel};

/// A transaction's planned write, if any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlannedWrite {
    /// Moves money with statements that stay prepared.
    Transfer,
    /// Moves money through the bare connection.
    BareTransfer,
    /// Creates a table, or drops it if it exists.
    Table,
    UserVersion,
    /// Writes one byte with incremental BLOB I/O.
    Blob,
    /// Inserts a child before its parent; the foreign key is deferred.
    Family,
    /// Reads the rows that its neighbors wrote.
    Look,
    /// Runs an UPDATE that matches no row.
    NoRow,
    /// Moves money with savepoints of its own; the last may stay open.
    Savepoints {
        is_left_open: bool,
    },
}

/// A transaction's planned end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlannedOutcome {
    Success,
    /// Fails after a read, before its write.
    FailsFirst,
    /// Fails after its write.
    Fails,
    Panics,
    /// Succeeds, but leaves a child without a parent.
    Orphan,
    /// Succeeds the first time it is run, and fails the second time.
    FailsAgain,
    PanicsAgain,
}

#[derive(Clone, Debug)]
pub(super) struct TransactionPlan {
    pub(super) id: i64,
    pub(super) planned: PlannedWrite,
    pub(super) end: PlannedOutcome,
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) amount: i64,
    /// Number of times that the closure was called.
    pub(super) runs: Arc<AtomicUsize>,
}

/// Value that a transaction returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TransactionReply {
    pub(super) id: i64,
    /// Number of the run that returned it, from 1.
    pub(super) run: usize,
    /// Balance of the account `to` at the end of the transaction.
    pub(super) balance: i64,
}

#[derive(Debug)]
pub(super) enum PlannedFailure {
    Chosen(TransactionReply),
    Engine(Error),
}

impl From<Error> for PlannedFailure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<rusqlite::Error> for PlannedFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error.into())
    }
}

static DEBIT: StaticStatement =
    StaticStatement::new("UPDATE account SET balance = balance - ?2 WHERE id = ?1");
static CREDIT: StaticStatement =
    StaticStatement::new("UPDATE account SET balance = balance + ?2 WHERE id = ?1");
static BALANCE: StaticStatement = StaticStatement::new("SELECT balance FROM account WHERE id = ?1");
static CHILD: StaticStatement = StaticStatement::new("INSERT INTO child VALUES (?1)");
static PARENT: StaticStatement = StaticStatement::new("INSERT INTO parent VALUES (?1)");
static NO_ROW: StaticStatement =
    StaticStatement::new("UPDATE account SET balance = 0 WHERE id = -1");

impl TransactionPlan {
    pub(super) fn random(
        id: i64,
        planned: PlannedWrite,
        end: PlannedOutcome,
        random: &mut StdRng,
    ) -> Self {
        let from = random.random_range(0..ACCOUNTS);
        let to = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = random.random_range(1..100);
        Self { id, planned, end, from, to, amount, runs: Arc::default() }
    }

    /// Runs the transaction as its closure.
    pub(super) fn run(&self, db: &Transaction<'_>) -> Result<TransactionReply, PlannedFailure> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if self.end == PlannedOutcome::FailsFirst {
            return Err(PlannedFailure::Chosen(self.look(db, run)?));
        }
        self.write(db)?;
        let seen = self.look(db, run)?;
        match self.end {
            PlannedOutcome::Fails => return Err(PlannedFailure::Chosen(seen)),
            PlannedOutcome::FailsAgain if run == 2 => return Err(PlannedFailure::Chosen(seen)),
            // `resume_unwind` bypasses the panic hook, which would print each panic.
            PlannedOutcome::Panics => std::panic::resume_unwind(Box::new("as the test wants")),
            PlannedOutcome::PanicsAgain if run == 2 => std::panic::resume_unwind(Box::new("again")),
            PlannedOutcome::Orphan => drop(db.statement(&CHILD)?.execute([-self.id])?),
            _ => {}
        }
        Ok(seen)
    }

    /// Applies the effects that `run` has on the database to the model.
    pub(super) fn apply(&self, model: &mut TableModel) {
        match self.planned {
            PlannedWrite::Transfer
            | PlannedWrite::BareTransfer
            | PlannedWrite::Savepoints { .. } => {
                model.balances[usize::from(self.from)] -= self.amount;
                model.balances[usize::from(self.to)] += self.amount;
            }
            PlannedWrite::Table => model.has_table[self.slot()] ^= true,
            PlannedWrite::UserVersion => model.user_version = self.id,
            PlannedWrite::Blob => model.bytes[self.slot()] = self.byte(),
            PlannedWrite::Family => drop(model.families.insert(self.id)),
            PlannedWrite::Look | PlannedWrite::NoRow => {}
        }
    }

    fn look(&self, db: &Transaction<'_>, run: usize) -> Result<TransactionReply, PlannedFailure> {
        let balance = db.statement(&BALANCE)?.query_row([self.to], |row| row.get(0))?;
        Ok(TransactionReply { id: self.id, run, balance })
    }

    fn write(&self, db: &Transaction<'_>) -> Result<(), PlannedFailure> {
        match self.planned {
            PlannedWrite::Transfer => {
                db.statement(&DEBIT)?.execute((self.from, self.amount))?;
                db.statement(&CREDIT)?.execute((self.to, self.amount))?;
            }
            PlannedWrite::BareTransfer => {
                let sql = "UPDATE account SET balance = balance + ?2 WHERE id = ?1";
                db.execute(sql, (self.from, -self.amount))?;
                db.prepare_cached(sql)?.execute((self.to, self.amount))?;
            }
            PlannedWrite::Table => {
                let slot = self.slot();
                let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
                let is_there = db.query_row(sql, [format!("made_{slot}")], |row| row.get(0))?;
                let verb = if is_there { "DROP TABLE" } else { "CREATE TABLE" };
                let columns = if is_there { "" } else { "(x)" };
                db.execute_batch(&format!("{verb} made_{slot} {columns}"))?;
            }
            PlannedWrite::UserVersion => db.pragma_update(None, "user_version", self.id)?,
            PlannedWrite::Blob => {
                let mut blob = db.blob_open("main", "page", "bytes", 1, false)?;
                blob.write_all_at(&[self.byte()], self.slot())?;
            }
            PlannedWrite::Family => {
                db.statement(&CHILD)?.execute([self.id])?;
                db.statement(&PARENT)?.execute([self.id])?;
            }
            PlannedWrite::Look => {}
            PlannedWrite::NoRow => assert_eq!(db.statement(&NO_ROW)?.execute([])?, 0),
            PlannedWrite::Savepoints { is_left_open } => {
                let Self { from, to, amount, .. } = *self;
                let end = if is_left_open { "" } else { "RELEASE own" };
                db.execute_batch(&format!(
                    "SAVEPOINT own;
                     UPDATE account SET balance = balance + 1000000;
                     ROLLBACK TO own;
                     UPDATE account SET balance = balance - {amount} WHERE id = {from};
                     SAVEPOINT inner;
                     UPDATE account SET balance = balance + {amount} WHERE id = {to};
                     RELEASE inner;
                     {end}"
                ))?;
            }
        }
        Ok(())
    }

    fn slot(&self) -> usize {
        usize::from(self.from) % SLOTS
    }

    fn byte(&self) -> u8 {
        u8::try_from(self.id % 251).expect("less than 251")
    }
}
