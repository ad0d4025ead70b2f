//! Runs the transactions of a batch in groups that share an undo point.
//!
//! The undo point is BEGIN for the first group of a batch, and a savepoint for each further group.
//! A transaction that fails after it wrote undoes its group; the transactions in it that had
//! succeeded then run again without it. `savepoint_policy.rs` decides how long a group is.
//!
//! # Invariants
//! - Only transactions that had succeeded run again, and they see the same data as before; a
//!   transaction that failed after it wrote never runs again.
//! - A closure cannot end the batch's transaction: an authorizer denies it BEGIN, COMMIT and
//!   ROLLBACK, and the name of the engine's savepoint. If SQLite itself rolls back, the connection
//!   is in autocommit mode after the closure.
//! - A closure's own savepoints cannot affect its neighbors: from the first one that is prepared,
//!   each transaction of this connection runs in a savepoint of its own, which ends those within
//!   it.
//! - A deferred foreign key that is violated when a closure ends fails that closure, so COMMIT
//!   never finds a violation: the counter is zero before each transaction.
//!
//! # Not here
//! - The start and end of a batch → `writer.rs`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, ffi};

use super::job::WriteJob;
use super::savepoint_policy::FailureRate;
use crate::error::{Error, Result, is_damage_code, sqlite};
use crate::open::prepared_connection::PreparedConnection;
use crate::open::transaction::StaticStatement;
use crate::system::clock::BatchTimeBudget;

const SAVEPOINT_NAME: &str = "engine_transaction";

pub(crate) static BEGIN: StaticStatement = StaticStatement::new("BEGIN IMMEDIATE");
pub(crate) static ROLLBACK: StaticStatement = StaticStatement::new("ROLLBACK");
static SAVEPOINT: StaticStatement = StaticStatement::new("SAVEPOINT engine_transaction");
static ROLLBACK_TO: StaticStatement = StaticStatement::new("ROLLBACK TO engine_transaction");
static RELEASE: StaticStatement = StaticStatement::new("RELEASE engine_transaction");

/// The reason why SQLite rolled back a whole batch.
pub(crate) struct BatchFailure {
    pub(crate) cause: Arc<str>,
    pub(crate) is_disk_full: bool,
}

impl From<rusqlite::Error> for BatchFailure {
    fn from(error: rusqlite::Error) -> Self {
        let is_disk_full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        Self { cause: error.to_string().into(), is_disk_full }
    }
}

/// Runs transactions on a connection that has a batch open.
pub(crate) struct BatchExecutor {
    pub(crate) session: PreparedConnection,
    has_foreign_keys: bool,
    failures: FailureRate,
    closures: Arc<ClosureAuthorizer>,
    /// Whether a transaction failed and SQLite reported the file as damaged.
    pub(crate) has_met_damage: AtomicBool,
}

/// The state that the authorizer of the closures shares with the executor.
#[derive(Default)]
struct ClosureAuthorizer {
    is_running: AtomicBool,
    /// Whether a closure has prepared a SAVEPOINT.
    has_savepoints: AtomicBool,
}

/// The progress of a batch: how many transactions ran, and how many succeeded.
#[derive(Default)]
pub(crate) struct BatchProgress {
    pub(crate) ran_count: usize,
    /// The number of transactions that ran and succeeded.
    pub(crate) ok_count: usize,
}

/// The outcome of one transaction, which decides what must be undone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionOutcome {
    /// The transaction succeeded.
    Success,
    /// The transaction failed before it wrote.
    FailedClean,
    /// The transaction failed, and its writes must be undone.
    FailedDirty,
    /// The transaction opened savepoints while it had none of its own around it.
    OpenedSavepoint,
}

impl BatchExecutor {
    /// Creates an executor on a connection, and sets the connection's authorizer.
    pub(crate) fn new(mut connection: Connection, has_foreign_keys: bool) -> Result<Self> {
        let closures = Arc::new(ClosureAuthorizer::default());
        let watch = Arc::clone(&closures);
        connection
            .authorizer(Some(move |context: AuthContext<'_>| watch.authorize(context.action)))
            .map_err(sqlite("authorizer"))?;
        let session = PreparedConnection::new(connection);
        Ok(Self {
            session,
            has_foreign_keys,
            failures: FailureRate::default(),
            closures,
            has_met_damage: AtomicBool::new(false),
        })
    }

    /// Runs `jobs` in order until the time is up. `progress` counts those that ran, also after an
    /// error.
    pub(crate) fn run_groups(
        &mut self,
        jobs: &[WriteJob],
        progress: &mut BatchProgress,
        time_max: Duration,
    ) -> Result<(), BatchFailure> {
        let mut budget = BatchTimeBudget::new(time_max);
        while progress.ran_count < jobs.len() && !budget.is_spent() {
            let first = progress.ran_count;
            let size = self.group_size();
            // A batch of one transaction already has its undo point.
            if size == 1 && jobs.len() > 1 {
                progress.ran_count += 1;
                let left = self.run_isolated(&jobs[first])?;
                progress.ok_count += usize::from(left == TransactionOutcome::Success);
                self.failures.observe(left == TransactionOutcome::FailedDirty);
                budget.step();
                continue;
            }
            let last = first.saturating_add(size).min(jobs.len());
            if first > 0 {
                self.session.run(&SAVEPOINT)?;
            }
            self.run_group(jobs, first..last, progress, &mut budget)?;
            if first > 0 {
                self.session.run(&RELEASE)?;
            }
        }
        Ok(())
    }

    /// Returns how many transactions may share an undo point.
    fn group_size(&self) -> usize {
        let has_savepoints = self.closures.has_savepoints.load(Ordering::Relaxed);
        if has_savepoints { 1 } else { self.failures.group_size() }
    }

    /// Runs a group until its end, the first failure that had to be undone, or the end of the
    /// budget. The undo point must exist: BEGIN if the group is the first of the batch, else a
    /// savepoint.
    fn run_group(
        &mut self,
        jobs: &[WriteJob],
        group: Range<usize>,
        progress: &mut BatchProgress,
        budget: &mut BatchTimeBudget,
    ) -> Result<(), BatchFailure> {
        let first = group.start;
        let ok_count_before = progress.ok_count;
        for index in group {
            progress.ran_count = index + 1;
            let left = self.run_in_group(&jobs[index])?;
            self.failures.observe(left == TransactionOutcome::FailedDirty);
            match left {
                TransactionOutcome::Success => progress.ok_count += 1,
                TransactionOutcome::FailedClean => {}
                TransactionOutcome::FailedDirty | TransactionOutcome::OpenedSavepoint => {
                    self.undo(first)?;
                    if left == TransactionOutcome::FailedDirty {
                        self.run_again(&jobs[first..index], first)?;
                    } else {
                        self.rerun_isolated(&jobs[first..=index])?;
                    }
                    let ok_count = jobs[first..=index].iter().filter(|job| job.is_ok()).count();
                    progress.ok_count = ok_count_before + ok_count;
                    return Ok(());
                }
            }
            if budget.step() {
                break;
            }
        }
        Ok(())
    }

    /// Repeats the transactions that had succeeded. If one fails now, though nothing before it has
    /// changed, it does not depend on the database alone: all of them then get savepoints of their
    /// own.
    fn run_again(&self, jobs: &[WriteJob], first: usize) -> Result<(), BatchFailure> {
        for job in jobs.iter().filter(|job| job.is_ok()) {
            if !matches!(self.run_in_group(job)?, TransactionOutcome::Success) {
                self.undo(first)?;
                return self.rerun_isolated(jobs);
            }
        }
        Ok(())
    }

    fn rerun_isolated(&self, jobs: &[WriteJob]) -> Result<(), BatchFailure> {
        jobs.iter().filter(|job| job.is_ok()).try_for_each(|job| self.run_isolated(job).map(drop))
    }

    /// Undoes the writes since the undo point of the group that began at `first`.
    fn undo(&self, first: usize) -> Result<(), BatchFailure> {
        let undone = if first == 0 {
            self.session.run(&ROLLBACK).and_then(|()| self.session.run(&BEGIN))
        } else {
            self.session.run(&ROLLBACK_TO)
        };
        Ok(undone?)
    }

    /// Runs one transaction in a savepoint of its own.
    fn run_isolated(&self, job: &WriteJob) -> Result<TransactionOutcome, BatchFailure> {
        self.session.run(&SAVEPOINT)?;
        let left = self.run_one(job)?;
        if matches!(left, TransactionOutcome::FailedDirty | TransactionOutcome::FailedClean) {
            self.session.run(&ROLLBACK_TO)?;
        }
        self.session.run(&RELEASE)?;
        Ok(left)
    }

    /// Runs one transaction that shares its undo point with others.
    fn run_in_group(&self, job: &WriteJob) -> Result<TransactionOutcome, BatchFailure> {
        let had_savepoints = self.closures.has_savepoints.load(Ordering::Relaxed);
        let left = self.run_one(job)?;
        let has_savepoints = self.closures.has_savepoints.load(Ordering::Relaxed);
        Ok(if has_savepoints && !had_savepoints {
            TransactionOutcome::OpenedSavepoint
        } else {
            left
        })
    }

    /// Runs one transaction. An error concerns the whole batch.
    fn run_one(&self, job: &WriteJob) -> Result<TransactionOutcome, BatchFailure> {
        self.session.with(|transaction| {
            transaction.start();
            self.closures.is_running.store(true, Ordering::Relaxed);
            let mut is_ok = job.run(transaction);
            self.closures.is_running.store(false, Ordering::Relaxed);
            let connection = transaction.connection_read_only();
            if !is_ok && is_damage_code(sqlite3mc_sys::last_error(connection)) {
                self.has_met_damage.store(true, Ordering::Relaxed);
            }
            if connection.is_autocommit() {
                let is_disk_full =
                    sqlite3mc_sys::last_error(connection).code == ErrorCode::DiskFull;
                let cause = "SQLite rolled back the whole transaction".into();
                return Err(BatchFailure { cause, is_disk_full });
            }
            if is_ok && self.has_foreign_keys {
                let is_violated = sqlite3mc_sys::has_deferred_violation(connection);
                if is_violated? {
                    job.fail(deferred_violation());
                    is_ok = false;
                }
            }
            // This is checked after a failure only, because the check for ignored inserts costs a
            // statement.
            Ok(if is_ok {
                TransactionOutcome::Success
            } else if transaction.may_have_written() {
                TransactionOutcome::FailedDirty
            } else {
                TransactionOutcome::FailedClean
            })
        })
    }
}

impl ClosureAuthorizer {
    /// Allows a closure everything except ending, or tampering with, the transaction that it shares
    /// with its neighbors.
    fn authorize(&self, action: AuthAction<'_>) -> Authorization {
        if !self.is_running.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match action {
            AuthAction::Transaction { .. } => Authorization::Deny,
            AuthAction::Savepoint { savepoint_name, .. }
                if savepoint_name.eq_ignore_ascii_case(SAVEPOINT_NAME) =>
            {
                Authorization::Deny
            }
            AuthAction::Savepoint { .. } => {
                self.has_savepoints.store(true, Ordering::Relaxed);
                Authorization::Allow
            }
            _ => Authorization::Allow,
        }
    }
}

fn deferred_violation() -> Error {
    let code = ffi::Error::new(ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
    let message = Some("FOREIGN KEY constraint failed".to_owned());
    Error::Sqlite {
        context: "end of the transaction",
        source: rusqlite::Error::SqliteFailure(code, message),
    }
}
