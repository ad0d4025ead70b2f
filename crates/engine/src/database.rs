//! One open database: a bounded queue in front of its writer, and its readers.
//!
//! A write joins the queue and, if the database is not scheduled yet, puts it into the ready queue.
//! A worker then runs one batch, and puts the database back behind the others if more is waiting.
//!
//! # Invariants
//! - A write that was accepted is run and answered, also when the database is closed meanwhile.
//! - Locks are taken in the order writer, queue; no caller waits for the writer's.
//!
//! # Not here
//! - What happens in a batch → `writer.rs`. Which databases are open → `databases.rs`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use rusqlite::Connection;

use crate::cache::CacheTotal;
use crate::cipher::Cipher;
use crate::error::{Error, Result};
use crate::migrate::{self, Migration};
use crate::open::{self, Encryption};
use crate::profile::Profile;
use crate::readers::{Reader, Readers};
use crate::ready::Ready;
use crate::writer::{self, Durability, Job, Pending, Writer, WriterLimits};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The key, if it has one.
    pub encryption: Encryption,
    /// Its settings.
    pub profile: &'static Profile,
    /// Its schema's history; empty if the caller looks after the schema.
    pub migrations: &'static [Migration],
    /// Whether a missing file is created.
    pub create: bool,
    /// The writer's limits.
    pub limits: WriterLimits,
    /// Read-only connections, each opened when it is first needed; past them a read waits for
    /// another to end.
    pub readers_count_max: usize,
}

impl Options {
    /// The `server` profile, no migrations, an existing file, default limits, four readers.
    pub fn new(encryption: Encryption) -> Self {
        Self {
            encryption,
            profile: Profile::SERVER,
            migrations: &[],
            create: false,
            limits: WriterLimits::default(),
            readers_count_max: 4,
        }
    }
}

/// One open database. Got from [`crate::Databases::open`]; while a caller holds it, it stays open.
pub struct Database {
    path: PathBuf,
    cipher: Option<Cipher>,
    encryption: Encryption,
    profile: &'static Profile,
    limits: WriterLimits,
    queue: Mutex<Queue>,
    /// `None` once closed.
    writer: Mutex<Option<Writer>>,
    readers: Readers,
    counters: Counters,
    cache_total: CacheTotal,
    ready: Arc<Ready>,
    /// What goes into the ready queue.
    this: Weak<Self>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    /// In the ready queue, or with a worker.
    is_scheduled: bool,
    is_closed: bool,
    count_max_seen: usize,
}

#[derive(Default)]
struct Counters {
    transactions: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    batches: AtomicU64,
    is_poisoned: AtomicBool,
}

/// What a database has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were committed.
    pub transactions: u64,
    /// Transactions that were run, or waited, and got an error.
    pub failed: u64,
    /// Transactions that were not accepted: the queue was full or the database closed.
    pub refused: u64,
    /// Batches; `transactions / batches` share a commit.
    pub batches: u64,
    /// The longest that the queue has been.
    pub queue_count_max_seen: usize,
    /// Open read-only connections.
    pub readers_open: usize,
    /// A commit has failed: no writes until the database is reopened.
    pub is_poisoned: bool,
}

impl Database {
    pub(crate) fn open(
        path: PathBuf,
        options: Options,
        ready: Arc<Ready>,
        cache_total: CacheTotal,
    ) -> Result<Arc<Self>> {
        let Options { encryption, profile, migrations, create, limits, readers_count_max } =
            options;
        let (mut connection, cipher) =
            open::open_connection(&path, &encryption, profile, false, create)?;
        migrate::migrate(&mut connection, migrations)?;
        let writer = Writer::new(connection, cache_total.share())?;
        Ok(Arc::new_cyclic(|this| Self {
            path,
            cipher,
            encryption,
            profile,
            limits,
            queue: Mutex::default(),
            writer: Mutex::new(Some(writer)),
            readers: Readers::new(readers_count_max),
            counters: Counters::default(),
            cache_total,
            ready,
            this: Weak::clone(this),
        }))
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
    /// The closure runs on another thread, in a batch with others; an error or a panic rolls back
    /// what it wrote, and nothing else. It may use savepoints, but not BEGIN, COMMIT or ROLLBACK.
    pub fn write<T, E, F>(&self, durability: Durability, transaction: F) -> Pending<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, pending) = writer::job(durability, transaction);
        if let Err((mut job, error)) = self.enqueue(job) {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            job.fail(error);
            job.answer();
        }
        pending
    }

    /// Runs a read on this thread, in one read transaction. Waits while all readers are in use.
    pub fn read<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.readers.read(|| self.open_reader(), f)
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        Stats {
            transactions: self.counters.transactions.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            refused: self.counters.refused.load(Ordering::Relaxed),
            batches: self.counters.batches.load(Ordering::Relaxed),
            queue_count_max_seen: self.queue().count_max_seen,
            readers_open: self.readers.open_count(),
            is_poisoned: self.counters.is_poisoned.load(Ordering::Relaxed),
        }
    }

    /// Runs one batch, and goes to the back of the ready queue if there is more. Called by the
    /// worker that took it from there.
    pub(crate) fn work(self: &Arc<Self>) {
        let mut slot = self.writer();
        // Closing runs what is queued, so a closed database has nothing to do.
        let Some(writer) = slot.as_mut() else { return };
        self.run_batch(writer);
        let mut queue = self.queue();
        if writer.has_intake() || !queue.jobs.is_empty() {
            drop(queue);
            drop(slot);
            self.ready.push(Arc::clone(self));
        } else {
            queue.is_scheduled = false;
        }
    }

    /// Accepts no more writes, runs and answers those that wait, and closes the file.
    pub(crate) fn close(&self) -> Result<()> {
        self.queue().is_closed = true;
        let mut slot = self.writer();
        let Some(mut writer) = slot.take() else { return Ok(()) };
        while self.run_batch(&mut writer) {}
        self.readers.close();
        writer.close()
    }

    /// Runs one batch, if anything waits.
    fn run_batch(&self, writer: &mut Writer) -> bool {
        if !writer.take_in(&mut self.queue().jobs, self.limits.batch_count_max) {
            return false;
        }
        let batch = writer.run_batch(self.limits.batch_time_max);
        self.count(&batch, writer.is_poisoned());
        for job in batch {
            job.answer();
        }
        true
    }

    /// Before the answers, so that who has one finds it counted.
    fn count(&self, batch: &[Box<dyn Job>], is_poisoned: bool) {
        let Counters { transactions, failed, batches, .. } = &self.counters;
        let succeeded = batch.iter().filter(|job| job.is_ok()).count();
        transactions.fetch_add(succeeded as u64, Ordering::Relaxed);
        failed.fetch_add((batch.len() - succeeded) as u64, Ordering::Relaxed);
        batches.fetch_add(1, Ordering::Relaxed);
        self.counters.is_poisoned.store(is_poisoned, Ordering::Relaxed);
    }

    fn enqueue(&self, job: Box<dyn Job>) -> Result<(), (Box<dyn Job>, Error)> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err((job, Error::Closed));
        }
        if queue.jobs.len() >= self.limits.queue_count_max {
            return Err((job, Error::Busy));
        }
        queue.jobs.push_back(job);
        queue.count_max_seen = queue.count_max_seen.max(queue.jobs.len());
        if !std::mem::replace(&mut queue.is_scheduled, true) {
            drop(queue);
            self.ready.push(self.this.upgrade().expect("the caller holds it"));
        }
        Ok(())
    }

    fn open_reader(&self) -> Result<Reader> {
        let connection =
            open::connect(&self.path, &self.encryption, self.cipher, self.profile, true)?;
        Ok(Reader { connection, cache: self.cache_total.share() })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds this lock")
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().expect("a batch catches the panics of its closures")
    }
}

#[cfg(test)]
mod tests;
