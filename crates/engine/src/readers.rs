//! Manages the pool of read-only connections of one database.
//!
//! A read runs on the caller's own thread, inside one read transaction, on a connection that no
//! other read uses during that time. Connections are opened when needed, up to a limit; beyond it,
//! callers wait.
//!
//! Beginning and ending a read transaction costs several times as much as a point read (locks in
//! the shared memory of the WAL, by system calls). So where no other process writes, a reader that
//! is used again within [`SNAPSHOT_AGE_MAX`] keeps its transaction for as long as there is nothing
//! newer to see.
//!
//! # Invariants
//! - A read sees every write that was answered before the read began. (Each batch raises the epoch
//!   before its answers; a snapshot of an older epoch is not used again.)
//! - A snapshot is never older than `SNAPSHOT_AGE_MAX` when a read begins on it, so the writes of
//!   another process are seen within that time; an unused snapshot is ended soon after.
//!
//! # Not here
//! - Writes → `write/writer.rs`. The key and the settings of a connection → `open.rs`.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, is_damage_code, sqlite};
use crate::open::page_cache::CacheShare;
use crate::open::prepared_connection::PreparedConnection;
use crate::open::transaction::{StaticStatement, Transaction};
use crate::system::clock;

/// The maximum age of a snapshot, and the time within which a reader must be used again to keep it.
pub(crate) const SNAPSHOT_AGE_MAX: Duration = Duration::from_millis(10);

static BEGIN: StaticStatement = StaticStatement::new("BEGIN");
static ROLLBACK: StaticStatement = StaticStatement::new("ROLLBACK");

pub(crate) struct ReaderPool {
    pool: Mutex<ReaderPoolState>,
    returned: Condvar,
    count_max: usize,
    /// Whether readers may keep a snapshot from one read to the next.
    may_keep: bool,
}

struct ReaderPoolState {
    /// The idle connections. The last one used is used next: it most likely has a snapshot and a
    /// warm cache.
    idle: Vec<ReadConnection>,
    /// The number of connections, idle and in use.
    open_count: usize,
    /// The number of those connections that are still being opened.
    opening_count: usize,
    /// The start times of the running reads.
    reading: Vec<Instant>,
    waiting_count: usize,
    /// Whether reads are paused, so that none begins.
    is_held: bool,
    is_closed: bool,
}

/// A read-only connection of the pool.
pub(crate) struct ReadConnection {
    session: PreparedConnection,
    cache: CacheShare,
    /// The snapshot of the open transaction, if there is one.
    snapshot: Option<Snapshot>,
    used: Option<Instant>,
}

/// The work that a read leaves for later.
#[derive(Clone, Copy)]
pub(crate) struct ReadOutcome {
    /// Whether the connection keeps a snapshot, which must be released later.
    pub(crate) keeps_snapshot: bool,
    /// Whether the read failed and SQLite reported the file as damaged.
    pub(crate) has_met_damage: bool,
}

#[derive(Clone, Copy)]
struct Snapshot {
    epoch: u64,
    begun: Instant,
}

impl ReaderPool {
    pub(crate) fn new(count_max: usize, may_keep: bool) -> Self {
        assert!(count_max > 0, "reads need a connection");
        let pool = ReaderPoolState {
            idle: Vec::new(),
            open_count: 0,
            opening_count: 0,
            reading: Vec::new(),
            waiting_count: 0,
            is_held: false,
            is_closed: false,
        };
        Self { pool: Mutex::new(pool), returned: Condvar::new(), count_max, may_keep }
    }

    /// Runs `f` in a read transaction that sees at least `epoch`. `open` opens a connection if none
    /// is idle. A closure that itself reads from the same database takes a second connection, and
    /// waits forever if there is none.
    pub(crate) fn read<T, E: From<Error>>(
        &self,
        epoch: u64,
        open: impl FnOnce() -> Result<ReadConnection>,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> (Result<T, E>, ReadOutcome) {
        let now = clock::now();
        let lease = self.lease(now, open).and_then(|mut lease| {
            lease.reader().begin(epoch, now)?;
            Ok(lease)
        });
        match lease {
            Ok(mut lease) => {
                let result = lease.reader().session.with(f);
                let has_met_damage = result.is_err() && lease.reader().has_met_damage();
                (result, ReadOutcome { keeps_snapshot: lease.return_reader(now), has_met_damage })
            }
            Err(error) => {
                let has_met_damage = error.is_damage();
                (Err(error.into()), ReadOutcome { keeps_snapshot: false, has_met_damage })
            }
        }
    }

    pub(crate) fn open_count(&self) -> usize {
        self.lock().open_count
    }

    /// Returns the running time of the oldest running read, or zero if none runs.
    pub(crate) fn longest_read(&self, now: Instant) -> Duration {
        let began = self.lock().reading.iter().min().copied();
        began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }

    /// Closes the idle connections. Returns `true` if no connection is left.
    pub(crate) fn close_idle(&self) -> bool {
        let mut pool = self.lock();
        pool.open_count -= pool.idle.len();
        let idle = std::mem::take(&mut pool.idle);
        let is_none_left = pool.open_count == 0;
        drop(pool);
        drop(idle);
        is_none_left
    }

    /// Ends the unused snapshots that were begun by `time`. Returns `true` if there are younger
    /// ones.
    pub(crate) fn release_before(&self, time: Instant) -> bool {
        let mut pool = self.lock();
        let ReaderPoolState { idle, open_count, .. } = &mut *pool;
        let is_old = |reader: &ReadConnection| {
            reader.snapshot.is_some_and(|snapshot| snapshot.begun <= time)
        };
        let before = idle.len();
        idle.retain_mut(|reader| !is_old(reader) || reader.end());
        *open_count -= before - idle.len();
        idle.iter().any(|reader| reader.snapshot.is_some())
    }

    /// Lets no read begin until `resume`, waits for running reads, but not beyond `until`, and ends
    /// all unused snapshots.
    pub(crate) fn pause(&self, until: Instant) {
        let mut pool = self.lock();
        pool.is_held = true;
        while pool.open_count > pool.idle.len() {
            let wait = until.saturating_duration_since(clock::now());
            if wait.is_zero() {
                break;
            }
            pool.waiting_count += 1;
            let waited = self.returned.wait_timeout(pool, wait);
            pool = waited.expect("no code panics while it holds this lock").0;
            pool.waiting_count -= 1;
        }
        drop(pool);
        self.release_before(clock::now());
    }

    /// Lets reads begin again.
    pub(crate) fn resume(&self) {
        self.lock().is_held = false;
        self.returned.notify_all();
    }

    /// Closes idle connections at once, and those in use when they are returned. Afterwards none is
    /// opened, so that nothing re-creates the files that closing the database removes.
    pub(crate) fn close(&self) {
        let mut pool = self.lock();
        pool.is_closed = true;
        pool.open_count -= pool.idle.len();
        let idle = std::mem::take(&mut pool.idle);
        self.returned.notify_all();
        while pool.opening_count > 0 {
            pool.waiting_count += 1;
            pool = self.returned.wait(pool).expect("no code panics while it holds this lock");
            pool.waiting_count -= 1;
        }
        drop(pool);
        drop(idle);
    }

    fn lease(
        &self,
        now: Instant,
        open: impl FnOnce() -> Result<ReadConnection>,
    ) -> Result<ReaderLease<'_>> {
        let mut began = now;
        let mut pool = self.lock();
        loop {
            if pool.is_closed {
                return Err(Error::Closed);
            }
            if !pool.is_held {
                if let Some(reader) = pool.idle.pop() {
                    pool.reading.push(began);
                    let reader = Some(reader);
                    return Ok(ReaderLease { readers: self, reader, began, keeps_snapshot: false });
                }
                if pool.open_count < self.count_max {
                    break;
                }
            }
            pool.waiting_count += 1;
            pool = self.returned.wait(pool).expect("no code panics while it holds this lock");
            pool.waiting_count -= 1;
            began = clock::now();
        }
        pool.open_count += 1;
        pool.opening_count += 1;
        pool.reading.push(began);
        drop(pool);
        // From here on, the lease releases its place in the count, whether or not a connection
        // fills it.
        let _opening = OpeningReader(self);
        let mut lease = ReaderLease { readers: self, reader: None, began, keeps_snapshot: false };
        lease.reader = Some(open()?);
        // The lease is dropped, and its connection closed, before `close` continues.
        if self.lock().is_closed { Err(Error::Closed) } else { Ok(lease) }
    }

    fn lock(&self) -> MutexGuard<'_, ReaderPoolState> {
        self.pool.lock().expect("no code panics while it holds this lock")
    }
}

/// A connection that is being opened; the opening ends when this is dropped, also after a panic.
struct OpeningReader<'a>(&'a ReaderPool);

impl Drop for OpeningReader<'_> {
    fn drop(&mut self) {
        self.0.lock().opening_count -= 1;
        self.0.returned.notify_all();
    }
}

impl ReadConnection {
    pub(crate) fn new(session: PreparedConnection, cache: CacheShare) -> Self {
        Self { session, cache, snapshot: None, used: None }
    }

    /// Checks whether the last call that failed reported damage in the file.
    fn has_met_damage(&self) -> bool {
        is_damage_code(sqlite3mc_sys::last_error(self.session.connection()))
    }

    /// Ensures that a transaction with a recent snapshot is open.
    fn begin(&mut self, epoch: u64, now: Instant) -> Result<()> {
        let is_recent =
            |snapshot: Snapshot| snapshot.epoch == epoch && now - snapshot.begun < SNAPSHOT_AGE_MAX;
        if self.snapshot.is_some_and(is_recent) {
            return Ok(());
        }
        if self.snapshot.is_some() && !self.end() {
            return Err(Error::Closed);
        }
        // The first statement takes the snapshot, which is later than the reading of `epoch`.
        self.session.run(&BEGIN).map_err(sqlite("begin a read"))?;
        self.snapshot = Some(Snapshot { epoch, begun: now });
        Ok(())
    }

    /// Ends the transaction. Returns `false` if that fails; the connection is then not used again.
    fn end(&mut self) -> bool {
        self.snapshot = None;
        self.cache.measure(self.session.connection());
        self.session.clear_parameters();
        self.session.connection().is_autocommit() || self.session.run(&ROLLBACK).is_ok()
    }
}

/// A connection from the pool, and its place in the count. It is returned when dropped, also after
/// a panic in the closure.
struct ReaderLease<'a> {
    readers: &'a ReaderPool,
    reader: Option<ReadConnection>,
    /// The start time of the read, as recorded in the pool.
    began: Instant,
    keeps_snapshot: bool,
}

impl ReaderLease<'_> {
    fn reader(&mut self) -> &mut ReadConnection {
        self.reader.as_mut().expect("only drop takes it")
    }

    /// Returns the connection after a read that began at `now`. The result is `true` if it keeps
    /// its snapshot.
    fn return_reader(mut self, now: Instant) -> bool {
        let reader = self.reader();
        let is_in_use = reader.used.replace(now).is_some_and(|used| now - used < SNAPSHOT_AGE_MAX);
        // A closure may have ended the transaction.
        self.keeps_snapshot = self.readers.may_keep
            && is_in_use
            && !self.reader().session.connection().is_autocommit();
        self.keeps_snapshot
    }
}

impl Drop for ReaderLease<'_> {
    fn drop(&mut self) {
        let usable = |reader: &mut ReadConnection| self.keeps_snapshot || reader.end();
        let reader =
            self.reader.take().and_then(|mut reader| usable(&mut reader).then_some(reader));
        let mut pool = self.readers.lock();
        if let Some(index) = pool.reading.iter().position(|began| *began == self.began) {
            pool.reading.swap_remove(index);
        }
        let closing = match reader {
            Some(reader) if !pool.is_closed => {
                pool.idle.push(reader);
                None
            }
            closing => {
                pool.open_count -= 1;
                closing
            }
        };
        // A notification is a system call, even if no thread waits.
        let is_awaited = pool.waiting_count > 0;
        drop(pool);
        drop(closing);
        if is_awaited {
            // Reads wait for a connection, and the writer waits for all of them.
            self.readers.returned.notify_all();
        }
    }
}
