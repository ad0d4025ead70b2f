//! The group-commit writer: the only connection of a database that writes.
//!
//! A batch of transactions runs inside one SQLite transaction and commits once; then every caller
//! hears what became of theirs. How a batch ends:
//! - *committed*: each caller gets its closure's result; those that failed or panicked left nothing
//!   behind.
//! - *rolled back*: SQLite gave up the transaction (disk full, `ON CONFLICT ROLLBACK`), or refused
//!   the commit with BUSY before it wrote. Nothing is stored, every success becomes an error, the
//!   next batch may succeed.
//! - *poisoned*: the commit failed in any other way. What is on the disk is uncertain, so nothing
//!   is tried again: an fsync that failed once may succeed the second time without having written.
//!
//! # Invariants
//! - A caller hears `Ok` only after the commit that holds its transaction, and what it hears is
//!   what the run that was committed returned.
//!
//! # Not here
//! - What keeps the transactions of a batch apart → `stretch.rs`. The queue and its limits, who
//!   runs batches → `database.rs`, `databases.rs`. Reads → `readers.rs`. When the WAL is moved into
//!   the file → `checkpoint.rs`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use crate::cache::CacheShare;
use crate::clock;
use crate::error::{Error, Result, sqlite};
use crate::job::{Durability, Ended, Queued};
use crate::pace::Pace;
use crate::profile;
use crate::session::Session;
use crate::stretch::{Progress, Runner};
use crate::transaction::Sql;

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
enum Ending {
    Committed,
    Busy,
    RolledBack(Arc<str>),
    Poisoned(Arc<str>),
}

impl Ending {
    fn tell(&self, job: &Queued) {
        match self {
            Self::Committed => {}
            Self::Busy => job.fail(Error::Busy),
            Self::RolledBack(cause) => job.fail(Error::RolledBack { cause: Arc::clone(cause) }),
            Self::Poisoned(cause) => job.fail(Error::Poisoned { cause: Arc::clone(cause) }),
        }
    }
}

/// A batch that has ended.
pub(crate) struct Batch {
    /// What ran; dropping these answers the callers.
    pub(crate) ended: Ended,
    /// How many of them are stored.
    pub(crate) committed_count: usize,
    /// What did not have its turn.
    pub(crate) rest: Vec<Queued>,
    /// Whether `ended` must not be answered before the WAL is flushed.
    pub(crate) needs_flush: bool,
    pub(crate) run_time: Duration,
    pub(crate) commit_time: Duration,
}

pub(crate) struct Writer {
    cache: CacheShare,
    synchronous: Synchronous,
    runner: Runner,
    pub(crate) pace: Pace,
    /// How long the WAL was after the last commit.
    wal_frames: Arc<AtomicU32>,
    poison: Poison,
}

/// How a commit or a flush failed, once one has. The writer and those who flush share it.
pub(crate) type Poison = Arc<OnceLock<Arc<str>>>;

/// `PRAGMA synchronous`: what the profile set, and what is set at present. 2 is FULL.
struct Synchronous {
    base: u8,
    present: u8,
    /// Whether others flush the WAL after the commit (`flush.rs`), so that it need not.
    is_flushed_after: bool,
}

const SYNCHRONOUS_FULL: u8 = 2;

pub(crate) static BEGIN: Sql = Sql::new("BEGIN IMMEDIATE");
static COMMIT: Sql = Sql::new("COMMIT");
pub(crate) static ROLLBACK: Sql = Sql::new("ROLLBACK");

impl Writer {
    pub(crate) fn new(mut connection: Connection, cache: CacheShare) -> Result<Self> {
        let number = |name: &'static str| -> Result<u8> {
            let value = profile::read(&connection, name).map_err(sqlite(name))?;
            Ok(value.parse().expect("SQLite answers with a small number"))
        };
        let base = number("synchronous")?;
        let journal_mode = profile::read(&connection, "journal_mode");
        let is_wal = journal_mode.map_err(sqlite("journal_mode"))? == "wal";
        let is_flushed_after = is_wal && base < SYNCHRONOUS_FULL;
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
            runner: Runner::new(connection, has_foreign_keys)?,
            cache,
            pace: Pace::default(),
            synchronous: Synchronous { base, present: base, is_flushed_after },
            wal_frames,
            poison: Poison::default(),
        })
    }

    /// Runs a batch: all of `jobs`, or as many as have their turn in `time_max`, or until SQLite
    /// has rolled it back.
    pub(crate) fn run_batch(&mut self, jobs: Vec<Queued>, time_max: Duration) -> Batch {
        let start = clock::now();
        let durability = jobs.iter().map(Queued::durability).max().unwrap_or(Durability::Os);
        let mut progress = Progress::default();
        let mut run_time = Duration::ZERO;
        let ending = match self.begin(durability) {
            Ok(()) => {
                let ran = self.runner.run_stretches(&jobs, &mut progress, time_max);
                run_time = start.elapsed();
                match ran {
                    Ok(()) => self.commit(),
                    Err(cause) => self.roll_back(cause),
                }
            }
            Err(ending) => {
                progress.ran_count = jobs.len();
                ending
            }
        };
        self.session().clear_parameters();
        self.cache.measure(self.runner.session.connection());
        let mut ran = jobs;
        let rest = ran.split_off(progress.ran_count);
        let committed_count = if matches!(ending, Ending::Committed) {
            progress.ok_count
        } else {
            for job in &ran {
                ending.tell(job);
            }
            0
        };
        let commit_time = start.elapsed().saturating_sub(run_time);
        let needs_flush = committed_count > 0
            && durability == Durability::Disk
            && self.synchronous.is_flushed_after;
        let ended = Ended::new(ran);
        Batch { ended, committed_count, rest, needs_flush, run_time, commit_time }
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.session().connection()
    }

    /// Pages in the WAL after the last commit.
    pub(crate) fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Ordering::Relaxed)
    }

    pub(crate) fn poison_cell(&self) -> Poison {
        Arc::clone(&self.poison)
    }

    /// Goes on with another's connection, and closes its own as it is.
    pub(crate) fn replace_by(&mut self, mut other: Self) {
        other.poison = Arc::clone(&self.poison);
        other.pace = std::mem::take(&mut self.pace);
        *self = other;
    }

    /// Moves the WAL into the database and closes. A poisoned writer leaves both as they are for
    /// recovery.
    pub(crate) fn close(self) -> Result<()> {
        let connection = self.runner.session.into_connection();
        if self.poison.get().is_some() {
            let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            connection.set_db_config(no_checkpoint, true).map_err(sqlite("close"))?;
        } else {
            // Passive, so as not to wait for a reader; closing the last connection removes the WAL.
            connection
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(sqlite("checkpoint"))?;
        }
        connection.close().map_err(|(_, source)| Error::Sqlite { context: "close", source })
    }

    fn session(&self) -> &Session {
        &self.runner.session
    }

    fn begin(&mut self, durability: Durability) -> Result<(), Ending> {
        if let Some(cause) = self.poison.get() {
            return Err(Ending::Poisoned(Arc::clone(cause)));
        }
        self.set_synchronous(durability).and_then(|()| self.session().run(&BEGIN)).map_err(
            |error| match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy) => Ending::Busy,
                _ => Ending::RolledBack(error.to_string().into()),
            },
        )
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

    fn commit(&mut self) -> Ending {
        match self.session().run(&COMMIT) {
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
        Ending::Poisoned(Arc::clone(self.poison.get_or_init(|| cause)))
    }

    fn end_transaction(&self) -> rusqlite::Result<()> {
        if self.session().connection().is_autocommit() {
            Ok(())
        } else {
            self.session().run(&ROLLBACK)
        }
    }
}

#[cfg(test)]
impl Writer {
    /// Makes every later commit fail.
    pub(crate) fn fail_commits(&mut self) {
        let placeholder = Session::new(Connection::open_in_memory().unwrap());
        let session = std::mem::replace(&mut self.runner.session, placeholder);
        let mut connection = session.into_connection();
        connection.commit_hook(Some(|| true)).unwrap();
        self.runner.session = Session::new(connection);
    }
}
