//! The group-commit writer: the only connection of a database that writes.
//!
//! A batch of transactions runs inside one SQLite transaction, a savepoint around each, and commits
//! once; then every caller hears what became of theirs.
//!
//! How a batch ends:
//! - *committed*: each caller gets its closure's result; those that failed or panicked rolled back
//!   alone.
//! - *rolled back*: SQLite gave up the transaction (disk full, `ON CONFLICT ROLLBACK`), or refused
//!   the commit with BUSY before it wrote. Nothing is stored, every success becomes an error, the
//!   next batch may succeed.
//! - *poisoned*: the commit failed in any other way. What is on the disk is uncertain, so nothing
//!   is tried again: an fsync that failed once may succeed the second time without having written.
//!
//! # Invariants
//! - A caller hears `Ok` only after the commit that holds its transaction.
//! - A closure cannot end the batch's transaction: an authorizer refuses it BEGIN, COMMIT and
//!   ROLLBACK, and our savepoint's name. What SQLite rolls back by itself shows as autocommit after
//!   the closure.
//! - A deferred foreign key that is violated when a closure ends fails that closure, so COMMIT
//!   never meets it: the counter is zero before each transaction, and a savepoint's rollback
//!   restores it.
//!
//! # Not here
//! - The queue and its limits, who runs batches → `database.rs`, `databases.rs`. Reads →
//!   `readers.rs`.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::oneshot;

use crate::cache::CacheShare;
use crate::clock;
use crate::error::{Error, Result, sqlite};
use crate::profile;

/// How safe a write is when its caller hears `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Committed: survives the end of this program, not a power loss. (With the profile's
    /// `synchronous`.)
    Os,
    /// Committed and flushed to the disk: survives a power loss.
    Disk,
}

/// The limits of one database's writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterLimits {
    /// Transactions that may wait; past them callers get [`Error::Busy`].
    pub queue_count_max: usize,
    /// Transactions in one commit. At 1,000 the commit costs little of each one's time.
    pub batch_count_max: usize,
    /// How long a batch may take before it commits and other databases get their turn.
    pub batch_time_max: Duration,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            queue_count_max: 10_000,
            batch_count_max: 1_000,
            batch_time_max: Duration::from_millis(50),
        }
    }
}

/// The answer to a write: a future, or for plain threads [`Pending::wait`]. Dropping it cancels
/// nothing.
#[derive(Debug)]
#[must_use = "the write happens anyway, but only this tells whether it did"]
pub struct Pending<T, E>(oneshot::Receiver<Result<T, E>>);

impl<T, E: From<Error>> Pending<T, E> {
    /// Blocks this thread until the answer is there.
    ///
    /// # Panics
    /// Inside an asynchronous task; await it there.
    pub fn wait(self) -> Result<T, E> {
        self.0.blocking_recv().unwrap_or_else(|_closed| Err(Error::Closed.into()))
    }
}

impl<T, E: From<Error>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_closed| Err(Error::Closed.into())))
    }
}

/// A queued transaction, whatever its types.
pub(crate) trait Job: Send {
    fn durability(&self) -> Durability;
    /// Runs the closure, once, and keeps its result. Says whether it wants its changes kept.
    fn run(&mut self, db: &Connection) -> bool;
    /// Makes a success, or a result that never came, an error. A failure stays what it is.
    fn fail(&mut self, error: Error);
    /// Tells the caller. One who no longer listens is no error.
    fn answer(self: Box<Self>);
    fn is_ok(&self) -> bool;
}

struct Transaction<T, E, F> {
    durability: Durability,
    closure: Option<F>,
    result: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
}

/// Makes a closure into a job and the answer that its caller waits for.
pub(crate) fn job<T, E, F>(durability: Durability, closure: F) -> (Box<dyn Job>, Pending<T, E>)
where
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (caller, pending) = oneshot::channel();
    let job = Transaction { durability, closure: Some(closure), result: None, caller };
    (Box::new(job), Pending(pending))
}

impl<T, E, F> Job for Transaction<T, E, F>
where
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn run(&mut self, db: &Connection) -> bool {
        let closure = self.closure.take().expect("a job runs once");
        // A panic leaves nothing half-done behind: the savepoint takes the database back, and what
        // the closure owned is dropped.
        let outcome = catch_unwind(AssertUnwindSafe(|| closure(db)));
        self.result = Some(outcome.unwrap_or_else(|_panic| Err(Error::Panicked.into())));
        self.is_ok()
    }

    fn fail(&mut self, error: Error) {
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error.into()));
        }
    }

    fn answer(self: Box<Self>) {
        if let Some(result) = self.result {
            drop(self.caller.send(result));
        }
    }

    fn is_ok(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }
}

/// How a batch ended, told to each of its transactions.
enum Ending {
    Committed,
    Busy,
    RolledBack(Arc<str>),
    Poisoned(Arc<str>),
}

impl Ending {
    fn tell(&self, job: &mut dyn Job) {
        match self {
            Self::Committed => {}
            Self::Busy => job.fail(Error::Busy),
            Self::RolledBack(cause) => job.fail(Error::RolledBack { cause: Arc::clone(cause) }),
            Self::Poisoned(cause) => job.fail(Error::Poisoned { cause: Arc::clone(cause) }),
        }
    }
}

pub(crate) struct Writer {
    connection: Connection,
    cache: CacheShare,
    /// What was taken from the queue and waits for the next batch.
    intake: VecDeque<Box<dyn Job>>,
    synchronous: Synchronous,
    is_closure_running: Arc<AtomicBool>,
    poison: Option<Arc<str>>,
}

/// `PRAGMA synchronous`: what the profile set, and what is set at present. 2 is FULL.
struct Synchronous {
    base: u8,
    present: u8,
}

const SYNCHRONOUS_FULL: u8 = 2;
const SAVEPOINT: &str = "engine_transaction";

impl Writer {
    pub(crate) fn new(mut connection: Connection, cache: CacheShare) -> Result<Self> {
        let base = profile::read(&connection, "synchronous").map_err(sqlite("synchronous"))?;
        let base = base.parse().expect("SQLite answers with a level from 0 to 3");
        let is_closure_running = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_closure_running);
        connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                if flag.load(Ordering::Relaxed) {
                    authorize(context.action)
                } else {
                    Authorization::Allow
                }
            }))
            .map_err(sqlite("authorizer"))?;
        let synchronous = Synchronous { base, present: base };
        let intake = VecDeque::new();
        Ok(Self { connection, cache, intake, synchronous, is_closure_running, poison: None })
    }

    /// Takes from `queue` what the next batch has room for. Says whether there is anything to do.
    pub(crate) fn take_in(&mut self, queue: &mut VecDeque<Box<dyn Job>>, count_max: usize) -> bool {
        let room = count_max.saturating_sub(self.intake.len());
        self.intake.extend(queue.drain(..room.min(queue.len())));
        !self.intake.is_empty()
    }

    pub(crate) fn has_intake(&self) -> bool {
        !self.intake.is_empty()
    }

    /// Runs what was taken in as one batch. Returns the transactions that were in it, for their
    /// answers. Stops after `time_max`, or when SQLite has rolled the batch back; the rest stays
    /// for the next batch.
    pub(crate) fn run_batch(&mut self, time_max: Duration) -> Vec<Box<dyn Job>> {
        let mut ran = Vec::with_capacity(self.intake.len());
        let ending = match self.begin() {
            Ok(()) => match self.run_jobs(&mut ran, time_max) {
                Ok(()) => self.commit(),
                Err(cause) => self.roll_back(cause),
            },
            Err(ending) => {
                ran.extend(self.intake.drain(..));
                ending
            }
        };
        self.cache.measure(&self.connection);
        for job in &mut ran {
            ending.tell(&mut **job);
        }
        ran
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Moves the WAL into the database and closes. A poisoned writer leaves both as they are for
    /// recovery.
    pub(crate) fn close(self) -> Result<()> {
        if self.poison.is_some() {
            let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            self.connection.set_db_config(no_checkpoint, true).map_err(sqlite("close"))?;
        } else {
            // Passive, so as not to wait for a reader; closing the last connection removes the WAL.
            self.connection
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(sqlite("checkpoint"))?;
        }
        self.connection.close().map_err(|(_, source)| Error::Sqlite { context: "close", source })
    }

    fn begin(&mut self) -> Result<(), Ending> {
        if let Some(cause) = &self.poison {
            return Err(Ending::Poisoned(Arc::clone(cause)));
        }
        let durability = self.intake.iter().map(|job| job.durability()).max();
        self.set_synchronous(durability.unwrap_or(Durability::Os))
            .and_then(|()| self.run("BEGIN IMMEDIATE -- engine"))
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy) => Ending::Busy,
                _ => Ending::RolledBack(error.to_string().into()),
            })
    }

    /// SQLite does not change it inside a transaction, so the whole batch gets what its strictest
    /// member asks.
    fn set_synchronous(&mut self, durability: Durability) -> rusqlite::Result<()> {
        let wanted = match durability {
            Durability::Os => self.synchronous.base,
            Durability::Disk => self.synchronous.base.max(SYNCHRONOUS_FULL),
        };
        if self.synchronous.present != wanted {
            self.connection.execute_batch(&format!("PRAGMA synchronous = {wanted}"))?;
            self.synchronous.present = wanted;
        }
        Ok(())
    }

    fn run_jobs(
        &mut self,
        ran: &mut Vec<Box<dyn Job>>,
        time_max: Duration,
    ) -> Result<(), Arc<str>> {
        let started = clock::now();
        while let Some(mut job) = self.intake.pop_front() {
            let outcome = self.run_one(&mut *job);
            ran.push(job);
            outcome?;
            if clock::now() - started > time_max {
                break;
            }
        }
        Ok(())
    }

    /// Runs one transaction in its savepoint. An error here is the whole batch's.
    fn run_one(&self, job: &mut dyn Job) -> Result<(), Arc<str>> {
        let whole_batch = |error: rusqlite::Error| Arc::from(error.to_string());
        self.run("SAVEPOINT engine_transaction -- engine").map_err(whole_batch)?;
        self.is_closure_running.store(true, Ordering::Relaxed);
        let mut keep = job.run(&self.connection);
        self.is_closure_running.store(false, Ordering::Relaxed);
        if self.connection.is_autocommit() {
            return Err("SQLite rolled back the whole transaction".into());
        }
        if keep && sqlite3mc_sys::has_deferred_violation(&self.connection).map_err(whole_batch)? {
            job.fail(deferred_violation());
            keep = false;
        }
        if !keep {
            self.run("ROLLBACK TO engine_transaction -- engine").map_err(whole_batch)?;
        }
        self.run("RELEASE engine_transaction -- engine").map_err(whole_batch)
    }

    fn commit(&mut self) -> Ending {
        match self.run("COMMIT -- engine") {
            Ok(()) => Ending::Committed,
            // Another process reads a database that is not in WAL mode. Nothing has been written.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.roll_back(error.to_string().into())
            }
            Err(error) => self.poison(format!("commit: {error}").into()),
        }
    }

    fn roll_back(&mut self, cause: Arc<str>) -> Ending {
        match self.end_transaction() {
            Ok(()) => Ending::RolledBack(cause),
            Err(error) => self.poison(format!("rollback: {error}, after: {cause}").into()),
        }
    }

    fn poison(&mut self, cause: Arc<str>) -> Ending {
        tracing::error!(%cause, "a database takes no more writes until it is reopened");
        if let Err(error) = self.end_transaction() {
            tracing::error!(%error, "rollback after a failed commit");
        }
        self.poison = Some(Arc::clone(&cause));
        Ending::Poisoned(cause)
    }

    fn end_transaction(&self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() { Ok(()) } else { self.run("ROLLBACK -- engine") }
    }

    /// Runs one of the writer's own statements. The comment in each keeps them apart in the
    /// statement cache from a closure's, which the authorizer must see.
    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// What a closure may do: everything but end, or tamper with, the transaction that its neighbours
/// share.
fn authorize(action: AuthAction<'_>) -> Authorization {
    match action {
        AuthAction::Transaction { .. } => Authorization::Deny,
        AuthAction::Savepoint { savepoint_name, .. }
            if savepoint_name.eq_ignore_ascii_case(SAVEPOINT) =>
        {
            Authorization::Deny
        }
        _ => Authorization::Allow,
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

#[cfg(test)]
impl Writer {
    /// Makes every later commit fail.
    pub(crate) fn fail_commits(&mut self) {
        self.connection.commit_hook(Some(|| true)).unwrap();
    }
}
