//! Many databases: a handful of worker threads, and open handles kept by last use.
//!
//! Tens of thousands of files, thousands of them open. Opening a file that is open gives the same
//! handle; opening another one may close those that nobody has used for longest. Files are opened
//! and closed outside the lock, so a slow one holds up only those who want that same file.
//!
//! # Invariants
//! - A file is open at most once: its slot says so while it is opened, used and closed.
//! - A handle that anyone holds, or that has work queued, is never closed to make room: the
//!   registry holds the only other reference, and the ready queue holds one for each database with
//!   work.
//! - At most `open_count_max` files are open.
//!
//! # Not here
//! - What a database does → `database.rs`. The order of work → `ready.rs`. Counts → `figures.rs`.

mod figures;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lru::LruCache;

use crate::cache::CacheTotal;
use crate::courier::Courier;
use crate::database::{Database, Options, Surroundings};
use crate::error::{Error, Result, io};
use crate::idle::Idle;
use crate::ready::Ready;
use crate::stats;
use crate::upkeep::Upkeep;

/// The limits of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that run write batches. More than cores only help when they wait for the disk.
    pub workers_count: usize,
    /// Open databases. Each takes about three file descriptors, and two more per reader in use.
    pub open_count_max: usize,
    /// The memory of all page caches together, past which databases that are not in use are closed.
    pub cache_bytes_max: usize,
    /// How long nobody writes to a database, after a write, before it is maintained;
    /// `Duration::MAX` for never.
    pub idle_time: Duration,
    /// In which all pages of a database are read, a part at a time when it is idle, to see whether
    /// they are damaged; zero: all of them each time. Of those that are looked at for damage
    /// ([`DamagePolicy`](crate::DamagePolicy)).
    pub scrub_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers_count: thread::available_parallelism().map_or(2, usize::from).max(2),
            // Past this each request may cost closing one file and opening another; three descriptors
            // each, and one more for each reader.
            open_count_max: 2_000,
            cache_bytes_max: 512 << 20,
            idle_time: Duration::from_secs(30),
            scrub_time: Duration::from_hours(30 * 24),
        }
    }
}

/// Threads that wait for the disk. The file system makes one write of what they flush at once.
const FLUSHERS_COUNT: usize = 4;

/// The open databases of a program, and the threads that write to them.
pub struct Databases {
    limits: Limits,
    registry: Mutex<Registry>,
    /// A slot has changed.
    changed: Condvar,
    surroundings: Surroundings,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Registry {
    slots: LruCache<PathBuf, Slot>,
    /// Slots that are open or being opened.
    open_count: usize,
    is_stopped: bool,
}

enum Slot {
    Opening,
    Open(Arc<Database>),
    Closing,
}

/// What a caller of `open` does next.
enum Step {
    Use(Arc<Database>),
    /// The slot is the caller's; it opens the file.
    Open,
    /// Another thread opens or closes that file.
    Wait,
    /// Close this one first.
    Evict(Arc<Database>),
}

impl Databases {
    /// Starts the worker threads. Inside a multi-threaded tokio runtime, that runtime's threads
    /// answer the callers, which takes this work off the writers.
    pub fn start(limits: Limits) -> Result<Self> {
        let workers_count = limits.workers_count.max(1);
        let surroundings = Surroundings {
            ready: Arc::new(Ready::new(workers_count)),
            flushing: Arc::new(Ready::new(FLUSHERS_COUNT)),
            courier: Courier::start(),
            upkeep: Arc::new(Upkeep::default()),
            idle: Arc::new(Idle::new(limits.idle_time)),
            maintained: Arc::default(),
            totals: Arc::new(stats::Counters::default()),
            cache_total: CacheTotal::default(),
            reserve: Arc::default(),
            scrub_time: limits.scrub_time,
        };
        let threads =
            spawn_threads(workers_count, &surroundings).inspect_err(|_| surroundings.stop())?;
        let registry = Registry { slots: LruCache::unbounded(), open_count: 0, is_stopped: false };
        Ok(Self {
            limits,
            registry: Mutex::new(registry),
            changed: Condvar::new(),
            surroundings,
            threads: Mutex::new(threads),
        })
    }

    /// Keeps so many bytes of the disk in that file from here on, for the moment when it is full:
    /// [`Databases::is_disk_full`]. `false`: it is full already.
    pub fn keep_reserve(&self, path: PathBuf, bytes: u64) -> Result<bool> {
        let Surroundings { reserve, upkeep, .. } = &self.surroundings;
        let has_room = reserve.keep(path, bytes)?;
        if !has_room {
            upkeep.refill(Arc::clone(reserve));
        }
        Ok(has_room)
    }

    /// The database in that file; opened with `options` unless it is open already.
    ///
    /// A key in `options` is not compared with that of an open database: who may open it is the
    /// caller's to know. [`Error::Busy`] if `open_count_max` databases are open and all of them in
    /// use.
    pub fn open(&self, path: &Path, options: impl FnOnce() -> Options) -> Result<Arc<Database>> {
        // A name that is canonical costs no system calls.
        let is_known = self.registry().slots.contains(path);
        let path = if is_known { path.to_owned() } else { canonical(path)? };
        let mut registry = self.registry();
        loop {
            match self.next_step(&mut registry, &path)? {
                Step::Use(database) => return Ok(database),
                Step::Wait => {
                    registry = self
                        .changed
                        .wait(registry)
                        .expect("no code panics while it holds this lock");
                }
                Step::Evict(database) => {
                    drop(registry);
                    self.close_and_log(&database);
                    registry = self.registry();
                }
                Step::Open => break,
            }
        }
        drop(registry);
        let mut claim = Claim { databases: self, path: &path, opened: None };
        let database = Database::open(path.clone(), options(), self.surroundings.clone())?;
        claim.opened = Some(Arc::clone(&database));
        Ok(database)
    }

    /// Closes one database, in use or not, after what is queued has run: those who hold it get
    /// [`Error::Closed`]. Without effect if it is not open.
    pub fn close(&self, path: &Path) -> Result<()> {
        let path = canonical(path)?;
        let mut registry = self.registry();
        loop {
            match registry.slots.peek(&path) {
                None => return Ok(()),
                Some(Slot::Open(database)) => {
                    let database = Arc::clone(database);
                    registry.mark_closing(&path);
                    drop(registry);
                    return self.close_marked(&database);
                }
                Some(Slot::Opening | Slot::Closing) => {
                    registry = self
                        .changed
                        .wait(registry)
                        .expect("no code panics while it holds this lock");
                }
            }
        }
    }

    /// Opens nothing more, runs and answers what is queued, closes every database and ends the
    /// threads.
    pub fn shutdown(&self) {
        self.registry().is_stopped = true;
        while let Some(database) = self.next_to_shut_down() {
            self.close_and_log(&database);
        }
        self.surroundings.stop();
        let threads = std::mem::take(&mut *self.threads.lock().expect("only shutdown takes it"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked");
            }
        }
    }

    fn next_step(&self, registry: &mut Registry, path: &Path) -> Result<Step> {
        if registry.is_stopped {
            return Err(Error::Closed);
        }
        let found = match registry.slots.get(path) {
            Some(Slot::Open(database)) => Some(Arc::clone(database)),
            Some(Slot::Opening | Slot::Closing) => return Ok(Step::Wait),
            None => None,
        };
        let has_room = found.is_some() || registry.open_count < self.limits.open_count_max;
        if !has_room || self.surroundings.cache_total.bytes() > self.limits.cache_bytes_max {
            match registry.evict() {
                Some(database) => return Ok(Step::Evict(database)),
                None if !has_room => return Err(Error::Busy),
                // Every database is in use; their caches are bounded by their profiles.
                None => {}
            }
        }
        if let Some(database) = found {
            return Ok(Step::Use(database));
        }
        registry.slots.put(path.to_owned(), Slot::Opening);
        registry.open_count += 1;
        Ok(Step::Open)
    }

    fn next_to_shut_down(&self) -> Option<Arc<Database>> {
        let mut registry = self.registry();
        loop {
            let open = registry.slots.iter().find_map(|(_, slot)| match slot {
                Slot::Open(database) => Some(Arc::clone(database)),
                Slot::Opening | Slot::Closing => None,
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
            tracing::warn!(%path, %error, "closing; the WAL will be recovered at the next open");
        }
    }

    /// Closes a database whose slot says `Closing`, and frees the slot.
    fn close_marked(&self, database: &Database) -> Result<()> {
        let closed = database.close();
        self.registry().slots.pop(database.path());
        self.changed.notify_all();
        closed
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Registry {
    /// Marks the database that was used longest ago, of those that nobody uses.
    fn evict(&mut self) -> Option<Arc<Database>> {
        let database = self.slots.iter().rev().find_map(|(_, slot)| match slot {
            Slot::Open(database) if Arc::strong_count(database) == 1 => Some(Arc::clone(database)),
            _ => None,
        })?;
        self.mark_closing(database.path());
        Some(database)
    }

    fn mark_closing(&mut self, path: &Path) {
        let slot = self.slots.peek_mut(path).expect("only an open database is closed");
        *slot = Slot::Closing;
        self.open_count -= 1;
    }
}

/// A slot marked `Opening`. Dropped, it holds the opened database, or is free again if there is
/// none: also when opening panicked.
struct Claim<'a> {
    databases: &'a Databases,
    path: &'a Path,
    opened: Option<Arc<Database>>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut registry = self.databases.registry();
        if let Some(database) = self.opened.take() {
            registry.slots.put(self.path.to_owned(), Slot::Open(database));
        } else {
            registry.slots.pop(self.path);
            registry.open_count -= 1;
        }
        self.databases.changed.notify_all();
    }
}

impl Surroundings {
    /// Lets the threads end.
    fn stop(&self) {
        self.ready.stop();
        self.flushing.stop();
        self.upkeep.stop();
        self.idle.stop();
    }
}

fn spawn_threads(workers_count: usize, surroundings: &Surroundings) -> Result<Vec<JoinHandle<()>>> {
    let Surroundings { ready, flushing, upkeep, idle, .. } = surroundings;
    let (timers, upkeep, idle) = (Arc::clone(upkeep), Arc::clone(upkeep), Arc::clone(idle));
    let timers = spawn("timers".to_owned(), move || timers.run_timers());
    let upkeep = spawn("upkeep".to_owned(), move || upkeep.run_slow_tasks());
    let idle = spawn("idle".to_owned(), move || idle.run());
    let workers = (0..workers_count).map(|index| {
        let ready = Arc::clone(ready);
        spawn(format!("writer-{index}"), move || take_turns(&ready, index, Database::work))
    });
    let flushers = (0..FLUSHERS_COUNT).map(|index| {
        let flushing = Arc::clone(flushing);
        spawn(format!("flusher-{index}"), move || take_turns(&flushing, index, Database::flush))
    });
    [timers, upkeep, idle].into_iter().chain(workers).chain(flushers).collect()
}

/// Gives each database its turn; `turn` says whether it wants another.
fn take_turns(ready: &Ready<Arc<Database>>, worker: usize, turn: impl Fn(&Database) -> bool) {
    let mut unfinished = None;
    while let Some(database) = ready.next(worker, unfinished.take()) {
        unfinished = turn(&database).then_some(database);
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name).spawn(work).map_err(io(Path::new("thread")))
}

/// The same path for the same file, also for one that does not exist yet.
fn canonical(path: &Path) -> Result<PathBuf> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = parent.canonicalize().map_err(io(parent))?;
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput.into()).map_err(io(path))?;
    Ok(directory.join(name))
}
