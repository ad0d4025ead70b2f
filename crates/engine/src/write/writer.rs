//! The group-commit writer: the only connection of a database that writes.
//!
//! A batch of transactions runs inside one SQLite transaction and commits once; then every caller
//! hears what became of theirs. How a batch ends:
//! - *committed*: each caller gets its closure's result; those that failed or panicked left nothing
//!   behind.
//! - *rolled back*: SQLite gave up the transaction (disk full, `ON CONFLICT ROLLBACK`), or refused
//!   the commit with BUSY before it wrote, or with FULL: of a commit that fails in a WAL the last
//!   frame is missing, so nobody reads the others, and the next commit overwrites them. Nothing is
//!   stored, every success becomes an error, the next batch may succeed.
//! - *poisoned*: the commit failed in any other way. What is on the disk is uncertain, so nothing
//!   is tried again before the database has recovered: an fsync that failed once may succeed the
//!   second time without having written.
//!
//! # Invariants
//! - A caller hears `Ok` only after the commit that holds its transaction, and what it hears is
//!   what the run that was committed returned.
//!
//! # Not here
//! - What keeps the transactions of a batch apart → `batch_executor.rs`. The queue and its limits,
//!   who runs batches → `database.rs`, `databases.rs`. Reads → `readers.rs`. When the WAL is moved
//!   into the file → `checkpoint.rs`.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use super::batch_executor::{BEGIN, BatchExecutor, BatchFailure, BatchProgress, ROLLBACK};
use super::batch_sizer::BatchSizer;
use super::job::{CompletedBatch, Durability, UnflushedBatch, WriteJob};
use crate::error::{Error, Result, sqlite};
use crate::open::page_cache::CacheShare;
use crate::open::prepared_connection::PreparedConnection;
use crate::open::profile;
use crate::open::transaction::StaticStatement;
use crate::system::clock;

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

/// How a batch ended, told to each of its transactions.
enum BatchOutcome {
    Committed,
    Busy,
    DiskFull(Arc<str>),
    RolledBack(Arc<str>),
    Poisoned(Arc<str>),
}

impl BatchOutcome {
    fn apply_to(&self, job: &WriteJob) {
        match self {
            Self::Committed => {}
            Self::Busy => job.fail(Error::Busy),
            Self::DiskFull(cause) => job.fail(Error::DiskFull { cause: Arc::clone(cause) }),
            Self::RolledBack(cause) => job.fail(Error::RolledBack { cause: Arc::clone(cause) }),
            Self::Poisoned(cause) => job.fail(Error::Poisoned { cause: Arc::clone(cause) }),
        }
    }
}

impl From<BatchFailure> for BatchOutcome {
    fn from(failure: BatchFailure) -> Self {
        let BatchFailure { cause, is_disk_full } = failure;
        if is_disk_full { Self::DiskFull(cause) } else { Self::RolledBack(cause) }
    }
}

/// A batch after its commit, or its failure.
pub(crate) struct BatchReport {
    pub(crate) transactions: BatchCompletion,
    pub(crate) ran_count: usize,
    /// How many of them are committed.
    pub(crate) committed_count: usize,
    /// What did not have its turn.
    pub(crate) rest: Vec<WriteJob>,
    /// Why the database must recover before the next batch, if it must.
    pub(crate) poison_cause: Option<Arc<str>>,
    pub(crate) is_disk_full: bool,
    /// A transaction failed, and SQLite said of the file that it is damaged.
    pub(crate) has_met_damage: bool,
    pub(crate) run_time: Duration,
    pub(crate) commit_time: Duration,
}

/// What ran.
pub(crate) enum BatchCompletion {
    /// It is committed, and nobody may hear of it before the WAL is flushed.
    Unflushed(UnflushedBatch),
    /// Its callers may hear what came of it.
    Completed(CompletedBatch),
}

pub(crate) struct Writer {
    cache: CacheShare,
    is_wal: bool,
    synchronous: SynchronousSetting,
    executor: BatchExecutor,
    pub(crate) batch_sizer: BatchSizer,
    /// How long the WAL was after the last commit.
    wal_frames: Arc<AtomicU32>,
}

/// `PRAGMA synchronous`: what the profile set, and what is set at present. 2 is FULL.
struct SynchronousSetting {
    base: u8,
    present: u8,
    /// Whether others flush the WAL after the commit (`wal_file.rs`), so that it need not.
    /// Checkpoints flush the file then: below NORMAL they do not.
    is_flushed_after: bool,
}

const SYNCHRONOUS_OFF: u8 = 0;
const SYNCHRONOUS_NORMAL: u8 = 1;
const SYNCHRONOUS_FULL: u8 = 2;

static COMMIT: StaticStatement = StaticStatement::new("COMMIT");

impl Writer {
    pub(crate) fn new(mut connection: Connection, cache: CacheShare) -> Result<Self> {
        let number = |name: &'static str| -> Result<u8> {
            let value = profile::read(&connection, name).map_err(sqlite(name))?;
            Ok(value.parse().expect("SQLite answers with a small number"))
        };
        let base = number("synchronous")?;
        let journal_mode = profile::read(&connection, "journal_mode");
        let is_wal = journal_mode.map_err(sqlite("journal_mode"))? == "wal";
        let is_flushed_after = is_wal && base == SYNCHRONOUS_NORMAL;
        let has_foreign_keys = number("foreign_keys")? != 0;
        let wal_frames = Arc::new(AtomicU32::new(0));
        let frames = Arc::clone(&wal_frames);
        // This takes the place of SQLite's own checkpoint in the commit.
        let note = move |_: &mut Wal, count: c_int| {
            frames.store(count.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note)).map_err(sqlite("WAL hook"))?;
        Ok(Self {
            executor: BatchExecutor::new(connection, has_foreign_keys)?,
            cache,
            batch_sizer: BatchSizer::default(),
            is_wal,
            synchronous: SynchronousSetting { base, present: base, is_flushed_after },
            wal_frames,
        })
    }

    /// Whether the profile ever flushes, so that it can make a write durable.
    pub(crate) fn can_flush(&self) -> bool {
        self.synchronous.base > SYNCHRONOUS_OFF
    }

    pub(crate) fn is_wal(&self) -> bool {
        self.is_wal
    }

    /// Runs a batch: all of `jobs`, or as many as have their turn in `time_max`, or until SQLite
    /// has rolled it back.
    pub(crate) fn run_batch(&mut self, jobs: Vec<WriteJob>, time_max: Duration) -> BatchReport {
        let start = clock::now();
        let durability = jobs.iter().map(WriteJob::durability).max().unwrap_or(Durability::Os);
        let mut progress = BatchProgress::default();
        let mut run_time = Duration::ZERO;
        let ending = match self.begin(durability) {
            Ok(()) => {
                let ran = self.executor.run_groups(&jobs, &mut progress, time_max);
                run_time = start.elapsed();
                match ran {
                    Ok(()) => self.commit(),
                    Err(failure) => self.roll_back(failure),
                }
            }
            Err(ending) => {
                progress.ran_count = jobs.len();
                ending
            }
        };
        self.session().clear_parameters();
        self.cache.measure(self.executor.session.connection());
        let mut ran = jobs;
        let rest = ran.split_off(progress.ran_count);
        let is_committed = matches!(ending, BatchOutcome::Committed);
        if !is_committed {
            for job in &ran {
                ending.apply_to(job);
            }
        }
        let committed_count = if is_committed { progress.ok_count } else { 0 };
        let commit_time = start.elapsed().saturating_sub(run_time);
        let needs_flush = committed_count > 0
            && durability == Durability::Disk
            && self.synchronous.is_flushed_after;
        BatchReport {
            ran_count: ran.len(),
            committed_count,
            transactions: if needs_flush {
                BatchCompletion::Unflushed(UnflushedBatch::new(ran))
            } else {
                BatchCompletion::Completed(CompletedBatch::new(ran))
            },
            rest,
            is_disk_full: matches!(ending, BatchOutcome::DiskFull(_)),
            has_met_damage: self.executor.has_met_damage.swap(false, Ordering::Relaxed),
            poison_cause: match ending {
                BatchOutcome::Poisoned(cause) => Some(cause),
                _ => None,
            },
            run_time,
            commit_time,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.session().connection()
    }

    /// Pages in the WAL after the last commit.
    pub(crate) fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Ordering::Relaxed)
    }

    /// Moves the WAL into the database and closes.
    pub(crate) fn close(self) -> Result<()> {
        let connection = self.executor.session.into_connection();
        // Passive, so as not to wait for a reader; closing the last connection removes the WAL.
        connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(sqlite("checkpoint"))?;
        close(connection)
    }

    /// Closes, and leaves database and WAL as they are, for recovery.
    pub(crate) fn close_as_is(self) -> Result<()> {
        let connection = self.executor.session.into_connection();
        let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(no_checkpoint, true).map_err(sqlite("close"))?;
        close(connection)
    }

    fn session(&self) -> &PreparedConnection {
        &self.executor.session
    }

    fn begin(&mut self, durability: Durability) -> Result<(), BatchOutcome> {
        let begun = self.set_synchronous(durability).and_then(|()| self.session().run(&BEGIN));
        begun.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => BatchOutcome::Busy,
            // The file has moved away, or its index is another process's: opening it anew may help.
            Some(ErrorCode::ReadOnly) => BatchOutcome::Poisoned(format!("begin: {error}").into()),
            _ => BatchFailure::from(error).into(),
        })
    }

    /// SQLite does not change it inside a transaction, so the whole batch gets what its strictest
    /// member asks.
    fn set_synchronous(&mut self, durability: Durability) -> rusqlite::Result<()> {
        let wanted = match durability {
            Durability::Os => self.synchronous.base,
            Durability::Disk if self.synchronous.is_flushed_after => self.synchronous.base,
            Durability::Disk => self.synchronous.base.max(SYNCHRONOUS_FULL),
        };
        if self.synchronous.present != wanted {
            let sql = format!("PRAGMA synchronous = {wanted}");
            self.session().connection().execute_batch(&sql)?;
            self.synchronous.present = wanted;
        }
        Ok(())
    }

    fn commit(&self) -> BatchOutcome {
        match self.session().run(&COMMIT) {
            Ok(()) => BatchOutcome::Committed,
            Err(error) => match error.sqlite_error_code() {
                // Another process reads a database that is not in WAL mode. Nothing has been
                // written.
                Some(ErrorCode::DatabaseBusy) => self.roll_back(error.into()),
                Some(ErrorCode::DiskFull) if self.is_wal => self.roll_back(error.into()),
                _ => self.give_up(format!("commit: {error}")),
            },
        }
    }

    fn roll_back(&self, failure: BatchFailure) -> BatchOutcome {
        match self.end_transaction() {
            Ok(()) => failure.into(),
            Err(error) => BatchOutcome::Poisoned(
                format!("rollback: {error}, after: {}", failure.cause).into(),
            ),
        }
    }

    fn give_up(&self, cause: String) -> BatchOutcome {
        if let Err(error) = self.end_transaction() {
            tracing::error!(%error, "cannot roll back after a failed commit");
        }
        BatchOutcome::Poisoned(cause.into())
    }

    fn end_transaction(&self) -> rusqlite::Result<()> {
        if self.session().connection().is_autocommit() {
            Ok(())
        } else {
            self.session().run(&ROLLBACK)
        }
    }
}

fn close(connection: Connection) -> Result<()> {
    connection.close().map_err(|(_, source)| Error::Sqlite { context: "close", source })
}

#[cfg(test)]
impl Writer {
    /// Makes every later commit fail.
    pub(crate) fn fail_commits(&mut self) {
        let placeholder = PreparedConnection::new(Connection::open_in_memory().unwrap());
        let session = std::mem::replace(&mut self.executor.session, placeholder);
        let mut connection = session.into_connection();
        connection.commit_hook(Some(|| true)).unwrap();
        self.executor.session = PreparedConnection::new(connection);
    }
}
