//! Manages many databases with a few worker threads; open handles are kept by last use.
//!
//! There may be tens of thousands of files, and thousands of them open. Opening a file that is open
//! returns the same handle; opening another one may close those that have been unused for longest.
//! Files are opened and closed outside the lock, so a slow one delays only callers that want that
//! same file.
//!
//! # Invariants
//! - A file is open at most once: its slot records that it is being opened, is open or is being
//!   closed.
//! - A handle that a caller holds, or that has work queued, is never closed to make room: the
//!   registry closes only handles of which it has the only reference, and the run queue holds one
//!   for each database with work.
//! - At most `open_count_max` files are open.
//!
//! # Not here
//! - The work of one database → `database.rs`. The order of work → `write/run_queue.rs`. Counts →
//!   `metrics.rs`.

mod metrics;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lru::LruCache;

use self::threads::{FLUSHERS_COUNT, spawn_threads};
use crate::database::{Database, DatabaseOptions, EngineContext};
use crate::error::{Error, Result, io};
use crate::maintenance::idle::IdleWatcher;
use crate::maintenance::scheduler::TaskScheduler;
use crate::open::page_cache::CacheTotal;
use crate::stats;
use crate::system::directory::directory_of;
use crate::write::completion::CompletionNotifier;
use crate::write::run_queue::RunQueue;

/// The limits of a registry.
#[derive(Clone, Copy, Debug)]
pub struct EngineLimits {
    /// The number of threads that run write batches. More threads than cores help only when they
    /// wait for the disk.
    pub workers_count: usize,
    /// The maximum number of open databases. Each takes about three file descriptors, and two more
    /// per reader in use.
    pub open_count_max: usize,
    /// The memory of all page caches together, beyond which unused databases are closed.
    pub cache_bytes_max: usize,
    /// The time without a write, after a write, before a database is maintained; `Duration::MAX`
    /// for never.
    pub idle_time: Duration,
    /// The period in which all pages of a database are read, a share each time that it is idle, to
    /// see whether they are damaged; with zero, all of them each time. This applies to databases
    /// whose [`DamagePolicy`](crate::DamagePolicy) looks for damage.
    pub scrub_time: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            workers_count: thread::available_parallelism().map_or(2, usize::from).max(2),
            // Beyond this, each request may cost closing one file and opening another. Each file
            // takes three descriptors, and two more per reader.
            open_count_max: 2_000,
            cache_bytes_max: 512 << 20,
            idle_time: Duration::from_secs(30),
            scrub_time: Duration::from_hours(30 * 24),
        }
    }
}

/// The open databases of a program, and the threads that write to them.
pub struct Databases {
    limits: EngineLimits,
    registry: Mutex<DatabaseRegistry>,
    /// A condition that is signaled when a slot has changed.
    changed: Condvar,
    context: EngineContext,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct DatabaseRegistry {
    slots: LruCache<PathBuf, DatabaseSlot>,
    /// The number of slots that are open or being opened.
    open_count: usize,
    is_stopped: bool,
}

enum DatabaseSlot {
    Opening,
    Open(Arc<Database>),
    Closing,
}

/// The next step of a caller of `open`.
enum OpenStep {
    Use(Arc<Database>),
    /// The caller has reserved the slot, and opens the file.
    Open,
    /// Another thread opens or closes the file.
    Wait,
    /// The caller must close this database first, to make room.
    Evict(Arc<Database>),
}

impl Databases {
    /// Starts the worker threads. Inside a multi-threaded tokio runtime, that runtime's threads
    /// notify the callers, which takes this work off the writers.
    pub fn start(limits: EngineLimits) -> Result<Self> {
        let workers_count = limits.workers_count.max(1);
        let context = EngineContext {
            run_queue: Arc::new(RunQueue::new(workers_count)),
            flush_queue: Arc::new(RunQueue::new(FLUSHERS_COUNT)),
            completions: CompletionNotifier::for_current_runtime(),
            scheduler: Arc::new(TaskScheduler::default()),
            idle_watcher: Arc::new(IdleWatcher::new(limits.idle_time)),
            maintenance_totals: Arc::default(),
            totals: Arc::new(stats::TransactionCounters::default()),
            cache_total: CacheTotal::default(),
            reserve: Arc::default(),
            scrub_time: limits.scrub_time,
        };
        let threads = spawn_threads(workers_count, &context).inspect_err(|_| context.stop())?;
        let registry =
            DatabaseRegistry { slots: LruCache::unbounded(), open_count: 0, is_stopped: false };
        Ok(Self {
            limits,
            registry: Mutex::new(registry),
            changed: Condvar::new(),
            context,
            threads: Mutex::new(threads),
        })
    }

    /// Reserves `bytes` of the disk in the file `path` from now on, for the moment when the disk is
    /// full: [`Databases::is_disk_full`]. Returns `false` if it is full already.
    pub fn reserve_disk_space(&self, path: PathBuf, bytes: u64) -> Result<bool> {
        let EngineContext { reserve, scheduler, .. } = &self.context;
        let has_room = reserve.allocate(path, bytes)?;
        if !has_room {
            scheduler.refill(Arc::clone(reserve));
        }
        Ok(has_room)
    }

    /// Returns the database in a file, which is opened with `options` unless it is open already.
    ///
    /// The key in `options` is not compared with that of an open database: the caller must check
    /// who may open it. Returns [`Error::Busy`] if `open_count_max` databases are open and all of
    /// them are in use.
    pub fn open(
        &self,
        path: &Path,
        options: impl FnOnce() -> DatabaseOptions,
    ) -> Result<Arc<Database>> {
        // A path that is canonical costs no system calls.
        let is_known = self.registry().slots.contains(path);
        let path = if is_known { path.to_owned() } else { canonical(path)? };
        let mut registry = self.registry();
        loop {
            match self.next_step(&mut registry, &path)? {
                OpenStep::Use(database) => return Ok(database),
                OpenStep::Wait => {
                    registry = self
                        .changed
                        .wait(registry)
                        .expect("no code panics while it holds this lock");
                }
                OpenStep::Evict(database) => {
                    drop(registry);
                    self.close_and_log(&database);
                    registry = self.registry();
                }
                OpenStep::Open => break,
            }
        }
        drop(registry);
        let mut claim = SlotReservation { databases: self, path: &path, opened: None };
        let database = Database::open(path.clone(), options(), self.context.clone())?;
        claim.opened = Some(Arc::clone(&database));
        Ok(database)
    }

    /// Closes one database, even if it is in use, after its queued writes have run: its holders
    /// then get [`Error::Closed`]. It has no effect if the database is not open.
    pub fn close(&self, path: &Path) -> Result<()> {
        let path = canonical(path)?;
        let mut registry = self.registry();
        loop {
            match registry.slots.peek(&path) {
                None => return Ok(()),
                Some(DatabaseSlot::Open(database)) => {
                    let database = Arc::clone(database);
                    registry.mark_closing(&path);
                    drop(registry);
                    return self.close_marked(&database);
                }
                Some(DatabaseSlot::Opening | DatabaseSlot::Closing) => {
                    registry = self
                        .changed
                        .wait(registry)
                        .expect("no code panics while it holds this lock");
                }
            }
        }
    }

    /// Opens no more databases, runs and answers the queued writes, closes every database and ends
    /// the threads.
    pub fn shutdown(&self) {
        self.registry().is_stopped = true;
        while let Some(database) = self.next_to_shut_down() {
            self.close_and_log(&database);
        }
        self.context.stop();
        let threads = std::mem::take(&mut *self.threads.lock().expect("only shutdown takes it"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked");
            }
        }
    }

    fn next_step(&self, registry: &mut DatabaseRegistry, path: &Path) -> Result<OpenStep> {
        if registry.is_stopped {
            return Err(Error::Closed);
        }
        let found = match registry.slots.get(path) {
            Some(DatabaseSlot::Open(database)) => Some(Arc::clone(database)),
            Some(DatabaseSlot::Opening | DatabaseSlot::Closing) => return Ok(OpenStep::Wait),
            None => None,
        };
        let has_room = found.is_some() || registry.open_count < self.limits.open_count_max;
        if !has_room || self.context.cache_total.bytes() > self.limits.cache_bytes_max {
            match registry.evict() {
                Some(database) => return Ok(OpenStep::Evict(database)),
                None if !has_room => return Err(Error::Busy),
                // Every database is in use; their caches are bounded by their profiles.
                None => {}
            }
        }
        if let Some(database) = found {
            return Ok(OpenStep::Use(database));
        }
        registry.slots.put(path.to_owned(), DatabaseSlot::Opening);
        registry.open_count += 1;
        Ok(OpenStep::Open)
    }

    fn next_to_shut_down(&self) -> Option<Arc<Database>> {
        let mut registry = self.registry();
        loop {
            let open = registry.slots.iter().find_map(|(_, slot)| match slot {
                DatabaseSlot::Open(database) => Some(Arc::clone(database)),
                DatabaseSlot::Opening | DatabaseSlot::Closing => None,
            });
            if let Some(database) = open {
                registry.mark_closing(database.path());
                return Some(database);
            }
            if registry.slots.is_empty() {
                return None;
            }
            registry =
                self.changed.wait(registry).expect("no code panics while it holds this lock");
        }
    }

    fn close_and_log(&self, database: &Database) {
        if let Err(error) = self.close_marked(database) {
            let path = database.path().display();
            tracing::warn!(%path, %error, "close failed; the next open recovers the WAL");
        }
    }

    /// Closes a database whose slot is `Closing`, and frees the slot.
    fn close_marked(&self, database: &Database) -> Result<()> {
        let closed = database.close();
        self.registry().slots.pop(database.path());
        self.changed.notify_all();
        closed
    }

    fn registry(&self) -> MutexGuard<'_, DatabaseRegistry> {
        self.registry.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl DatabaseRegistry {
    /// Marks the least recently used of the unused databases as `Closing`, and returns it.
    fn evict(&mut self) -> Option<Arc<Database>> {
        let database = self.slots.iter().rev().find_map(|(_, slot)| match slot {
            DatabaseSlot::Open(database) if Arc::strong_count(database) == 1 => {
                Some(Arc::clone(database))
            }
            _ => None,
        })?;
        self.mark_closing(database.path());
        Some(database)
    }

    fn mark_closing(&mut self, path: &Path) {
        let slot = self.slots.peek_mut(path).expect("only an open database is closed");
        *slot = DatabaseSlot::Closing;
        self.open_count -= 1;
    }
}

/// A slot marked `Opening`. When this is dropped, also after a panic while opening, the slot holds
/// the opened database, or is free if there is none.
struct SlotReservation<'a> {
    databases: &'a Databases,
    path: &'a Path,
    opened: Option<Arc<Database>>,
}

impl Drop for SlotReservation<'_> {
    fn drop(&mut self) {
        let mut registry = self.databases.registry();
        if let Some(database) = self.opened.take() {
            registry.slots.put(self.path.to_owned(), DatabaseSlot::Open(database));
        } else {
            registry.slots.pop(self.path);
            registry.open_count -= 1;
        }
        self.databases.changed.notify_all();
    }
}

/// Returns the canonical path of a file, also of one that does not exist yet.
fn canonical(path: &Path) -> Result<PathBuf> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let parent = directory_of(path);
    let directory = parent.canonicalize().map_err(io(parent))?;
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput.into()).map_err(io(path))?;
    Ok(directory.join(name))
}
