//! Implements one open database: a bounded queue in front of its writer, and its readers.
//!
//! A write joins the queue and, if the database is not scheduled yet, puts it into the run queue. A
//! worker then runs one batch, and puts the database at the back of the run queue if more writes
//! wait; after a write stall, if the writer outruns the checkpoints.
//!
//! # Invariants
//! - An accepted write is run and answered, even if the database is closed in the meantime.
//! - Locks are taken in the order writer, queue; no caller waits for the writer's lock.
//!
//! # Not here
//! - The execution of a batch → `write/writer.rs`; the flush between its commit and its answers →
//!   `write/wal_file.rs`. The open databases → `databases.rs`. Checkpoints → `wal.rs`. Maintenance
//!   → `idle_maintenance.rs`, `maintenance/replace_file.rs`. Recovery → `recover.rs`. Damage →
//!   `scrub.rs`, `damage/repair.rs`. Counts → `metrics.rs`.

mod flush;
mod idle_maintenance;
mod metrics;
mod options;
mod recover;
mod repair;
mod replace_file;
mod rewrite;
mod scrub;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

pub use self::options::DatabaseOptions;
use crate::backup;
use crate::checkpoint::{self, Checkpointer};
use crate::damage::repair::{FileRepair, repair_unopened};
use crate::damage::{DamagePolicy, DamageState};
use crate::error::{Error, Result};
use crate::maintenance::disk_reserve::DiskReserve;
use crate::maintenance::idle::IdleWatcher;
use crate::maintenance::scheduler::TaskScheduler;
use crate::maintenance::{self, MaintenanceState, PageCounts, compact_copy};
use crate::open::cipher::Cipher;
use crate::open::migrate::{self, Migration};
use crate::open::page_cache::CacheTotal;
use crate::open::prepared_connection::PreparedConnection;
use crate::open::profile::Profile;
use crate::open::transaction::Transaction;
use crate::open::{self, FileEncryption};
use crate::readers::{ReadConnection, ReaderPool, SNAPSHOT_AGE_MAX};
use crate::stats::TransactionCounters;
use crate::system::clock;
use crate::write::completion::CompletionNotifier;
use crate::write::job::{self, CompletedBatch, Durability, UnflushedBatch, WriteFuture, WriteJob};
use crate::write::poison::Poison;
use crate::write::queue::{BoundedQueue, QueuePushError};
use crate::write::run_queue::RunQueue;
use crate::write::wal_file::WalFile;
use crate::write::writer::{BatchCompletion, Writer, WriterLimits};

/// An open database, from [`crate::Databases::open`]. While a caller holds it, it is not closed to
/// make room for others.
pub struct Database {
    path: PathBuf,
    cipher: Option<Cipher>,
    encryption: FileEncryption,
    profile: &'static Profile,
    migrations: &'static [Migration],
    limits: WriterLimits,
    is_sole_writer: bool,
    queue: BoundedQueue<WriteJob>,
    /// The writer, or `None` once the database is closed, and while it has not recovered.
    writer: Mutex<Option<Writer>>,
    can_flush: bool,
    /// The end of the write stall after a batch during which the writer outran the checkpoints.
    stalled_until: Mutex<Option<Instant>>,
    readers: ReaderPool,
    /// A number that is raised when there is something new to see; see `readers.rs`.
    epoch: AtomicU64,
    is_release_due: AtomicBool,
    checkpoints: Checkpointer,
    /// The WAL as a file, or `None` with a rollback journal.
    wal_file: Option<WalFile>,
    /// Committed batches that wait for a flush.
    flushes: BoundedQueue<UnflushedBatch>,
    poison: Poison,
    damage: DamageState,
    counters: TransactionCounters,
    maintenance: MaintenanceState,
    /// The page counts of the file, as last measured.
    pages: Mutex<PageCounts>,
    context: EngineContext,
    /// A reference to this database, for the run queue.
    this: Weak<Self>,
}

/// The queues and totals that all databases of a registry share.
#[derive(Clone)]
pub(crate) struct EngineContext {
    pub(crate) run_queue: Arc<RunQueue<Arc<Database>>>,
    /// The databases that have batches to flush.
    pub(crate) flush_queue: Arc<RunQueue<Arc<Database>>>,
    pub(crate) completions: CompletionNotifier,
    pub(crate) scheduler: Arc<TaskScheduler<Database>>,
    /// The databases that are maintained once they are idle.
    pub(crate) idle_watcher: Arc<IdleWatcher<Database>>,
    /// The counters of maintenance in all databases.
    pub(crate) maintenance_totals: Arc<maintenance::MaintenanceCounters>,
    /// The counters of transactions in all databases.
    pub(crate) totals: Arc<TransactionCounters>,
    pub(crate) cache_total: CacheTotal,
    pub(crate) reserve: Arc<DiskReserve>,
    /// The period in which all of a file is scrubbed.
    pub(crate) scrub_time: Duration,
}

impl Database {
    pub(crate) fn open(
        path: PathBuf,
        options: DatabaseOptions,
        context: EngineContext,
    ) -> Result<Arc<Self>> {
        let DatabaseOptions {
            encryption,
            profile,
            migrations,
            create,
            is_sole_writer,
            damage,
            limits,
            readers_count_max,
        } = options;
        compact_copy::remove_abandoned_copy(&path)?;
        backup::remove_heartbeat(&path);
        let open = || {
            let mut opened = open::open_writable(&path, &encryption, profile, create)?;
            migrate::migrate(&mut opened.connection, migrations)?;
            Ok::<_, Error>(opened)
        };
        let opened = match (open(), &damage) {
            (Err(error), DamagePolicy::Repair(finish)) if error.is_damage() => {
                let repair = FileRepair {
                    path: &path,
                    encryption: &encryption,
                    profile,
                    migrations,
                    finish,
                };
                repair_unopened(&repair, &error, &context.maintenance_totals)?;
                open()?
            }
            (opened, _) => opened?,
        };
        let open::WritableConnection { connection, cipher, wal_failure } = opened;
        let checkpoint_limit = checkpoint::read_limit(&connection)?;
        let writer = Writer::new(connection, context.cache_total.share())?;
        let wal_file = if writer.is_wal() { Some(WalFile::open(&path)?) } else { None };
        let database = Arc::new_cyclic(|this| Self {
            wal_file,
            flushes: BoundedQueue::new(usize::MAX),
            poison: Poison::default(),
            damage: DamageState::new(damage),
            can_flush: writer.can_flush(),
            stalled_until: Mutex::default(),
            path,
            cipher,
            encryption,
            profile,
            migrations,
            limits,
            is_sole_writer,
            queue: BoundedQueue::new(limits.queue_count_max),
            writer: Mutex::new(Some(writer)),
            readers: ReaderPool::new(readers_count_max, is_sole_writer),
            epoch: AtomicU64::new(0),
            is_release_due: AtomicBool::new(false),
            checkpoints: Checkpointer::new(checkpoint_limit),
            counters: TransactionCounters::default(),
            maintenance: MaintenanceState::default(),
            pages: Mutex::default(),
            context,
            this: Weak::clone(this),
        });
        if let Some(writer) = database.writer().as_ref() {
            database.measure_on(writer.connection())?;
            database.begin_scrubbing(writer.connection())?;
        }
        if let Some(error) = wal_failure {
            database.poison(format!("abandoned WAL: {error}"));
        }
        Ok(database)
    }

    /// Returns the canonical path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the cipher in use, if the file is encrypted.
    pub fn cipher(&self) -> Option<Cipher> {
        self.cipher
    }

    /// Returns the profile in use.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Queues a write transaction. Never blocks: if the queue is full, the answer is
    /// [`Error::Busy`].
    ///
    /// The closure runs on another thread, in a batch with others that commits once. It runs alone,
    /// and sees the database as the transactions before it left it. An error or a panic undoes the
    /// writes of this closure, and no others.
    ///
    /// *The closure may run more than once*: when a neighbor fails after it wrote, both are undone
    /// and this one runs again without it. Only the writes of the last run are stored, and only its
    /// result is returned; effects outside the database may happen twice. So the closure is an
    /// [`Fn`]. A closure that failed or panicked after it wrote never runs again.
    ///
    /// The closure may use savepoints, but not BEGIN, COMMIT or ROLLBACK. From the first savepoint
    /// on, each transaction of this database runs in a savepoint, which costs a third of the speed.
    /// Statements that stay prepared, by [`Transaction::statement`], cost least.
    pub fn write<T, E, F>(&self, durability: Durability, transaction: F) -> WriteFuture<T, E>
    where
        F: Fn(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, pending) = job::job(durability, transaction);
        if durability == Durability::Disk && !self.can_flush {
            job.fail(Error::NeverFlushed { profile: self.profile.name });
            return pending;
        }
        match self.queue.push(job) {
            Ok(true) => self.schedule(self.this.upgrade().expect("the caller holds it")),
            Ok(false) => {}
            Err(refused) => {
                self.count(|counters| &counters.refused, 1);
                // Dropping the job sends the answer.
                match refused {
                    QueuePushError::Full(job) => job.fail(Error::Busy),
                    QueuePushError::Closed(job) => job.fail(Error::Closed),
                }
            }
        }
        pending
    }

    /// Runs a read on this thread, in one read transaction. Waits while all readers are in use.
    pub fn read<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let epoch = self.epoch.load(Ordering::Acquire);
        let (result, end) = self.readers.read(epoch, || self.open_reader(), f);
        if end.has_met_damage {
            self.suspect_damage();
        }
        if end.keeps_snapshot
            && !self.is_release_due.load(Ordering::Relaxed)
            && !self.is_release_due.swap(true, Ordering::Relaxed)
        {
            self.context
                .scheduler
                .release_at(clock::now() + SNAPSHOT_AGE_MAX, Weak::clone(&self.this));
        }
        result
    }

    /// Runs one batch. Returns whether more writes wait and may run at once. Called by the worker
    /// that took the database from the run queue.
    pub(crate) fn process_batch(&self) -> bool {
        let mut slot = self.writer();
        let rest = self.run_batch(slot.as_mut());
        drop(slot);
        let rest = rest.map(|rest| clock::now() + rest.min(self.limits.batch_time_max));
        *self.stalled_until() = rest;
        let is_waiting = self.queue.unschedule();
        if is_waiting && rest.is_some() {
            self.schedule(self.this.upgrade().expect("who runs a batch holds it"));
            return false;
        }
        is_waiting
    }

    /// Schedules the next batch, after the write stall if there is one. Called when the queue
    /// requires it.
    fn schedule(&self, this: Arc<Self>) {
        let rest_until = *self.stalled_until();
        let EngineContext { run_queue, scheduler, .. } = &self.context;
        match rest_until {
            Some(time) if time > clock::now() => scheduler.resume_at(time, this),
            _ => run_queue.push(this),
        }
    }

    /// Schedules the database at the end of a write stall.
    pub(crate) fn end_stall(self: Arc<Self>) {
        let run_queue = Arc::clone(&self.context.run_queue);
        run_queue.push(self);
    }

    fn stalled_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.stalled_until.lock().expect("no code panics while it holds this lock")
    }

    /// Ends snapshots that have not been used recently. Called by the scheduler's thread.
    pub(crate) fn release_snapshots(&self) {
        self.is_release_due.store(false, Ordering::Relaxed);
        let now = clock::now();
        if self.readers.release_before(now.checked_sub(SNAPSHOT_AGE_MAX).unwrap_or(now))
            && !self.is_release_due.swap(true, Ordering::Relaxed)
        {
            self.context.scheduler.release_at(now + SNAPSHOT_AGE_MAX, Weak::clone(&self.this));
        }
    }

    /// Accepts no more writes, runs and answers those that wait, and closes the file.
    pub(crate) fn close(&self) -> Result<()> {
        self.queue.close();
        self.maintenance.close();
        let mut slot = self.writer();
        while !self.queue.is_empty() {
            self.run_batch(slot.as_mut());
        }
        while self.flush() {}
        self.readers.close();
        self.checkpoints.close();
        match slot.take() {
            None => Ok(()),
            Some(writer) if self.poison.is_set() => writer.close_as_is(),
            Some(writer) => match self.checkpoint_guard() {
                Some(_pass) => writer.close(),
                // A copy is in progress; the next opening of the file moves the WAL.
                None => writer.close_as_is(),
            },
        }
    }

    /// Runs one batch, if writes wait. Returns how long the writer should stall after it.
    fn run_batch(&self, writer: Option<&mut Writer>) -> Option<Duration> {
        let Some(writer) = writer else {
            self.refuse(self.queue.take(usize::MAX));
            return None;
        };
        let jobs = self.queue.take(writer.batch_sizer.next_size().min(self.limits.batch_count_max));
        if jobs.is_empty() {
            return None;
        }
        self.reset_wal(writer);
        if self.poison.is_set() {
            self.refuse(jobs);
            return None;
        }
        let batch = writer.run_batch(jobs, self.limits.batch_time_max);
        // From here on, reads see the batch; callers may be notified only after that.
        self.epoch.fetch_add(1, Ordering::Release);
        let waiting_count = self.queue.put_back(batch.rest.into_iter());
        writer.batch_sizer.observe(
            batch.ran_count,
            waiting_count,
            batch.run_time,
            batch.commit_time,
        );
        // The batch is counted before its callers are notified, so that a caller with an answer
        // finds its transaction counted.
        self.count(|counters| &counters.transactions, batch.committed_count);
        self.count(|counters| &counters.failed, batch.ran_count - batch.committed_count);
        self.count(|counters| &counters.batches, 1);
        if let Some(cause) = batch.poison_cause {
            self.poison(cause);
        }
        if batch.is_disk_full {
            self.release_reserve();
        }
        if batch.has_met_damage {
            self.suspect_damage();
        }
        match batch.transactions {
            BatchCompletion::Unflushed(batch) => self.flush_later(batch),
            BatchCompletion::Completed(batch) => self.context.completions.notify(batch),
        }
        if self.checkpoints.after_batch(writer.wal_frames()) {
            self.context.scheduler.checkpoint(Weak::clone(&self.this));
        }
        self.watch_idleness();
        self.checkpoints.stall_duration(batch.run_time + batch.commit_time)
    }

    /// Answers transactions that cannot run with an error.
    fn refuse(&self, jobs: Vec<WriteJob>) {
        let cause = self.poison.cause();
        let error = || match &cause {
            Some(cause) => Error::Poisoned { cause: Arc::clone(cause) },
            None => Error::Closed,
        };
        self.count(|counters| &counters.failed, jobs.len());
        for job in &jobs {
            job.fail(error());
        }
        self.context.completions.notify(CompletedBatch::new(jobs));
    }

    fn open_reader(&self) -> Result<ReadConnection> {
        let connection =
            open::connect(&self.path, &self.encryption, self.cipher, self.profile, true)?;
        let cache = self.context.cache_total.share();
        Ok(ReadConnection::new(PreparedConnection::new(connection), cache))
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().expect("a batch catches the panics of its closures")
    }
}

#[cfg(test)]
mod tests;
