//! Implements the group-commit writer, the only connection of a database that writes.
//!
//! A batch of transactions runs inside one SQLite transaction and commits once; then every caller
//! is notified of its result. A batch ends in one of three ways:
//! - *committed*: each caller gets its closure's result; closures that failed or panicked left no
//!   changes.
//! - *rolled back*: SQLite rolled back the transaction (disk full, `ON CONFLICT ROLLBACK`), or
//!   refused the commit with BUSY before it wrote, or with FULL: after a commit that fails in a
//!   WAL, the last frame is missing, so no reader uses the others, and the next commit overwrites
//!   them. Nothing is stored, every success becomes an error, and the next batch may succeed.
//! - *poisoned*: the commit failed in any other way. The content of the disk is uncertain, so
//!   nothing is tried again before the database has recovered: an fsync that failed once may
//!   succeed the second time without having written.
//!
//! # Invariants
//! - A caller receives `Ok` only after the commit that contains its transaction, with the value
//!   that the committed run of its closure returned.
//!
//! # Not here
//! - The isolation of a batch's transactions from each other → `batch_executor.rs`. The queue, its
//!   limits and the threads that run batches → `database.rs`, `databases.rs`. Reads → `readers.rs`.
//!   The time at which the WAL is moved into the file → `checkpoint.rs`.

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
    /// The number of transactions that may wait; further ones get [`Error::Busy`].
    pub queue_count_max: usize,
    /// The number of transactions in one commit. At 1,000, the commit adds little to each one's
    /// time.
    pub batch_count_max: usize,
    /// The time that a batch may take before it commits and other databases get their turn.
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

/// The outcome of a batch, which applies to each of its transactions.
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

/// The report on a batch that has committed or failed.
pub(crate) struct BatchReport {
    pub(crate) transactions: BatchCompletion,
    pub(crate) ran_count: usize,
    /// The number of transactions that were committed.
    pub(crate) committed_count: usize,
    /// The transactions that did not run.
    pub(crate) rest: Vec<WriteJob>,
    /// The reason why the database must recover before the next batch, if it must.
    pub(crate) poison_cause: Option<Arc<str>>,
    pub(crate) is_disk_full: bool,
    /// Whether a transaction failed and SQLite reported the file as damaged.
    pub(crate) has_met_damage: bool,
    pub(crate) run_time: Duration,
    pub(crate) commit_time: Duration,
}

/// The transactions of a batch that ran.
pub(crate) enum BatchCompletion {
    /// The batch is committed, but no caller may be notified before the WAL is flushed.
    Unflushed(UnflushedBatch),
    /// The batch has ended, and its callers may be notified.
    Completed(CompletedBatch),
}

pub(crate) struct Writer {
    cache: CacheShare,
    is_wal: bool,
    synchronous: SynchronousSetting,
    executor: BatchExecutor,
    pub(crate) batch_sizer: BatchSizer,
    /// The length of the WAL after the last commit, in frames.
    wal_frames: Arc<AtomicU32>,
}

/// The values of `PRAGMA synchronous`: the profile's, and the present one. 2 is FULL.
struct SynchronousSetting {
    base: u8,
    present: u8,
    /// Whether another thread flushes the WAL after the commit (`wal_file.rs`), so that the commit
    /// need not. Checkpoints flush the file then: below NORMAL they do not.
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
        // This hook replaces SQLite's own checkpoint in the commit.
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

    /// Returns whether the profile ever flushes, so that a write can be made durable.
    pub(crate) fn can_flush(&self) -> bool {
        self.synchronous.base > SYNCHRONOUS_OFF
    }

    pub(crate) fn is_wal(&self) -> bool {
        self.is_wal
    }

    /// Runs a batch: all of `jobs`, or as many as fit into `time_max`, or until SQLite has rolled
    /// the batch back.
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

    /// Returns the number of pages in the WAL after the last commit.
    pub(crate) fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Ordering::Relaxed)
    }

    /// Moves the WAL into the database file and closes the connection.
    pub(crate) fn close(self) -> Result<()> {
        let connection = self.executor.session.into_connection();
        // The checkpoint is passive, so it does not wait for readers; the last connection to close
        // removes the WAL.
        connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(sqlite("checkpoint"))?;
        close(connection)
    }

    /// Closes the connection, and leaves the database and the WAL unchanged for recovery.
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
            // The file has moved, or its index belongs to another process: reopening the file may
            // help.
            Some(ErrorCode::ReadOnly) => BatchOutcome::Poisoned(format!("begin: {error}").into()),
            _ => BatchFailure::from(error).into(),
        })
    }

    /// Sets `synchronous` as the strictest member of a batch requires. SQLite does not change it
    /// inside a transaction, so it applies to the whole batch.
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
