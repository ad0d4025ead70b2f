//! One open database: a bounded queue in front of its writer, and its readers.
//!
//! A write joins the queue and, if the database is not scheduled yet, puts it into the ready queue.
//! A worker then runs one batch, and puts the database back behind the others if more is waiting;
//! after a rest, if the writer outruns the checkpoints.
//!
//! # Invariants
//! - A write that was accepted is run and answered, also when the database is closed meanwhile.
//! - Locks are taken in the order writer, queue; no caller waits for the writer's.
//!
//! # Not here
//! - What happens in a batch → `writer.rs`; between its commit and its answers → `flush.rs`. Which
//!   databases are open → `databases.rs`. Checkpoints → `wal.rs`. What is done when nobody writes →
//!   `maintain.rs`, `shrink.rs`. How a database recovers → `recover.rs`. Damage → `scrub.rs`,
//!   `repair.rs`. Counts → `figures.rs`.

mod figures;
mod flush;
mod maintain;
mod options;
mod recover;
mod repair;
mod rewrite;
mod scrub;
mod shrink;
mod wal;

pub use self::options::Options;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use crate::backup;
use crate::cache::CacheTotal;
use crate::checkpoint::Checkpoints;
use crate::cipher::Cipher;
use crate::clock;
use crate::compact;
use crate::courier::Courier;
use crate::damage::{DamagePolicy, DamageState};
use crate::error::{Error, Result, sqlite};
use crate::flush::WalFile;
use crate::idle::Idle;
use crate::job::{self, Durability, EndedBatch, Pending, Queued, UnflushedBatch};
use crate::maintenance::{self, Maintenance, Pages};
use crate::migrate::{self, Migration};
use crate::open::{self, Encryption};
use crate::poison::Poison;
use crate::profile::{self, Profile};
use crate::queue::{Queue, Refused};
use crate::readers::{Reader, Readers, SNAPSHOT_AGE_MAX};
use crate::ready::Ready;
use crate::repair::Repair;
use crate::reserve::DiskReserve;
use crate::session::Session;
use crate::stats::Counters;
use crate::transaction::Transaction;
use crate::upkeep::Upkeep;
use crate::writer::{RanTransactions, Writer, WriterLimits};

/// One open database. Got from [`crate::Databases::open`]; while a caller holds it, it stays open.
pub struct Database {
    path: PathBuf,
    cipher: Option<Cipher>,
    encryption: Encryption,
    profile: &'static Profile,
    migrations: &'static [Migration],
    limits: WriterLimits,
    is_sole_writer: bool,
    queue: Queue<Queued>,
    /// `None` once closed, and while the database has not recovered.
    writer: Mutex<Option<Writer>>,
    can_flush: bool,
    /// When the writer may run its next batch, after one during which it outran the checkpoints.
    rest_until: Mutex<Option<Instant>>,
    readers: Readers,
    /// Raised when there is something new to see; see `readers.rs`.
    epoch: AtomicU64,
    is_release_due: AtomicBool,
    checkpoints: Checkpoints,
    /// `None` with a rollback journal.
    wal_file: Option<WalFile>,
    /// Committed batches that wait for a flush.
    flushes: Queue<UnflushedBatch>,
    poison: Poison,
    damage: DamageState,
    counters: Counters,
    maintenance: Maintenance,
    /// As last counted.
    pages: Mutex<Pages>,
    surroundings: Surroundings,
    /// What goes into the ready queue.
    this: Weak<Self>,
}

/// What all databases of a registry share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) ready: Arc<Ready<Arc<Database>>>,
    /// Databases that have something to flush.
    pub(crate) flushing: Arc<Ready<Arc<Database>>>,
    pub(crate) courier: Courier,
    pub(crate) upkeep: Arc<Upkeep>,
    /// Databases that will be maintained when they are idle.
    pub(crate) idle: Arc<Idle>,
    /// What maintenance has done, to all databases.
    pub(crate) maintained: Arc<maintenance::Counters>,
    /// What has happened in all databases.
    pub(crate) totals: Arc<Counters>,
    pub(crate) cache_total: CacheTotal,
    pub(crate) reserve: Arc<DiskReserve>,
    /// In which all of a file is scrubbed.
    pub(crate) scrub_time: Duration,
}

impl Database {
    pub(crate) fn open(
        path: PathBuf,
        options: Options,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>> {
        let Options {
            encryption,
            profile,
            migrations,
            create,
            is_sole_writer,
            damage,
            limits,
            readers_count_max,
        } = options;
        compact::remove_left_over(&path)?;
        backup::remove_heartbeat(&path);
        let open = || {
            let mut opened = open::open_writable(&path, &encryption, profile, create)?;
            migrate::migrate(&mut opened.connection, migrations)?;
            Ok::<_, Error>(opened)
        };
        let opened = match (open(), &damage) {
            (Err(error), DamagePolicy::Repair(finish)) if error.is_damage() => {
                let repair =
                    Repair { path: &path, encryption: &encryption, profile, migrations, finish };
                repair::repair_unopened(&repair, &error, &surroundings.maintained)?;
                open()?
            }
            (opened, _) => opened?,
        };
        let open::Writable { connection, cipher, wal_failure } = opened;
        let limit = profile::read(&connection, "wal_autocheckpoint");
        let limit = limit.map_err(sqlite("wal_autocheckpoint"))?;
        let limit = limit.parse().expect("SQLite answers with a count");
        let writer = Writer::new(connection, surroundings.cache_total.share())?;
        let wal_file = if writer.is_wal() { Some(WalFile::open(&path)?) } else { None };
        let database = Arc::new_cyclic(|this| Self {
            wal_file,
            flushes: Queue::new(usize::MAX),
            poison: Poison::default(),
            damage: DamageState::new(damage),
            can_flush: writer.can_flush(),
            rest_until: Mutex::default(),
            path,
            cipher,
            encryption,
            profile,
            migrations,
            limits,
            is_sole_writer,
            queue: Queue::new(limits.queue_count_max),
            writer: Mutex::new(Some(writer)),
            readers: Readers::new(readers_count_max, is_sole_writer),
            epoch: AtomicU64::new(0),
            is_release_due: AtomicBool::new(false),
            checkpoints: Checkpoints::new(limit),
            counters: Counters::default(),
            maintenance: Maintenance::default(),
            pages: Mutex::default(),
            surroundings,
            this: Weak::clone(this),
        });
        if let Some(writer) = database.writer().as_ref() {
            database.measure_on(writer.connection())?;
            database.begin_scrubbing(writer.connection())?;
        }
        if let Some(error) = wal_failure {
            database.poison(format!("a WAL that was left: {error}"));
        }
        Ok(database)
    }

    /// The file, by its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cipher in use, if the file is encrypted.
    pub fn cipher(&self) -> Option<Cipher> {
        self.cipher
    }

    /// The settings in use.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Queues a write transaction. Never blocks: a full queue answers [`Error::Busy`].
    ///
    /// The closure runs on another thread, in a batch with others that commits once. It sees the
    /// database as the transactions before it left it, alone. An error or a panic takes back what
    /// it wrote, and nothing else.
    ///
    /// *It may run more than once*: when a neighbour fails after it wrote, both are taken back and
    /// this one runs again without it. Only what the last run wrote is stored, and only what it
    /// returned is answered; what a closure does beyond the database, it may do twice. So it is an
    /// [`Fn`]. One that failed or panicked after it wrote never runs again.
    ///
    /// It may use savepoints, but not BEGIN, COMMIT or ROLLBACK. From the first savepoint on, this
    /// database gives each of its transactions one, which costs a third of the speed. Statements
    /// that stay prepared, by [`Transaction::statement`], cost least.
    pub fn write<T, E, F>(&self, durability: Durability, transaction: F) -> Pending<T, E>
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
                // Dropping the job answers.
                match refused {
                    Refused::Full(job) => job.fail(Error::Busy),
                    Refused::Closed(job) => job.fail(Error::Closed),
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
            self.surroundings
                .upkeep
                .release_at(clock::now() + SNAPSHOT_AGE_MAX, Weak::clone(&self.this));
        }
        result
    }

    /// Runs one batch. Says whether more is waiting and may be run at once. Called by the worker
    /// that took it from the ready queue.
    pub(crate) fn work(&self) -> bool {
        let mut slot = self.writer();
        let rest = self.run_batch(slot.as_mut());
        drop(slot);
        let rest = rest.map(|rest| clock::now() + rest.min(self.limits.batch_time_max));
        *self.rest_until() = rest;
        let is_waiting = self.queue.end_turn();
        if is_waiting && rest.is_some() {
            self.schedule(self.this.upgrade().expect("who runs a batch holds it"));
            return false;
        }
        is_waiting
    }

    /// Has a batch run, after the writer's rest. Called by whoever the queue tells to.
    fn schedule(&self, this: Arc<Self>) {
        let rest_until = *self.rest_until();
        let Surroundings { ready, upkeep, .. } = &self.surroundings;
        match rest_until {
            Some(time) if time > clock::now() => upkeep.resume_at(time, this),
            _ => ready.push(this),
        }
    }

    /// Schedules it after a rest.
    pub(crate) fn resume(self: Arc<Self>) {
        let ready = Arc::clone(&self.surroundings.ready);
        ready.push(self);
    }

    fn rest_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rest_until.lock().expect("no code panics while it holds this lock")
    }

    /// Ends snapshots that nobody has used of late. Called by the upkeep thread.
    pub(crate) fn release_snapshots(&self) {
        self.is_release_due.store(false, Ordering::Relaxed);
        let now = clock::now();
        if self.readers.release_before(now.checked_sub(SNAPSHOT_AGE_MAX).unwrap_or(now))
            && !self.is_release_due.swap(true, Ordering::Relaxed)
        {
            self.surroundings.upkeep.release_at(now + SNAPSHOT_AGE_MAX, Weak::clone(&self.this));
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
            Some(writer) => match self.enter_gate() {
                Some(_pass) => writer.close(),
                // A copy is being made; who opens it next moves the WAL.
                None => writer.close_as_is(),
            },
        }
    }

    /// Runs one batch, if anything waits. Says how long the writer should rest after it.
    fn run_batch(&self, writer: Option<&mut Writer>) -> Option<Duration> {
        let Some(writer) = writer else {
            self.refuse(self.queue.take(usize::MAX));
            return None;
        };
        let jobs = self.queue.take(writer.pace.batch().min(self.limits.batch_count_max));
        if jobs.is_empty() {
            return None;
        }
        self.reset_wal(writer);
        if self.poison.is_set() {
            self.refuse(jobs);
            return None;
        }
        let batch = writer.run_batch(jobs, self.limits.batch_time_max);
        // From here on reads see it, and only then may a caller hear of it.
        self.epoch.fetch_add(1, Ordering::Release);
        let waiting_count = self.queue.put_back(batch.rest.into_iter());
        writer.pace.observe(batch.ran_count, waiting_count, batch.run_time, batch.commit_time);
        // Before the answers, so that who has one finds it counted.
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
            RanTransactions::Unflushed(batch) => self.flush_later(batch),
            RanTransactions::Ended(batch) => self.surroundings.courier.deliver(batch),
        }
        if self.checkpoints.after_batch(writer.wal_frames()) {
            self.surroundings.upkeep.checkpoint(Weak::clone(&self.this));
        }
        self.watch_idleness();
        self.checkpoints.rest(batch.run_time + batch.commit_time)
    }

    /// Answers transactions that cannot run.
    fn refuse(&self, jobs: Vec<Queued>) {
        let cause = self.poison.cause();
        let error = || match &cause {
            Some(cause) => Error::Poisoned { cause: Arc::clone(cause) },
            None => Error::Closed,
        };
        self.count(|counters| &counters.failed, jobs.len());
        for job in &jobs {
            job.fail(error());
        }
        self.surroundings.courier.deliver(EndedBatch::new(jobs));
    }

    fn open_reader(&self) -> Result<Reader> {
        let connection =
            open::connect(&self.path, &self.encryption, self.cipher, self.profile, true)?;
        let cache = self.surroundings.cache_total.share();
        Ok(Reader::new(Session::new(connection), cache))
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().expect("a batch catches the panics of its closures")
    }
}

#[cfg(test)]
mod tests;
