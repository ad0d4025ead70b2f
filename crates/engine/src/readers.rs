//! The pool of read-only connections of one database.
//!
//! A read runs on the caller's own thread, on a connection that it has to itself for that long,
//! inside one read transaction. Connections are opened as they are needed, up to a limit; past it,
//! callers wait in turn.
//!
//! Beginning and ending a read transaction costs several times what a point read does (locks in
//! the shared memory of the WAL, by system calls). So where no other process
//! writes, a reader that is used again within [`SNAPSHOT_AGE_MAX`] stays in its transaction for as long as there is nothing newer to see.
//!
//! # Invariants
//! - A read sees every write that was answered before it began. (Each batch raises the epoch before
//!   its answers; a snapshot of an older epoch is not used again.)
//! - A snapshot is never older than `SNAPSHOT_AGE_MAX` when a read begins on it, so that what
//!   another process writes is seen within that time; when nobody uses it, it is ended soon after.
//!
//! # Not here
//! - Writes → `write/writer.rs`. Which key and settings a connection gets → `open.rs`.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, is_damage_code, sqlite};
use crate::open::page_cache::CacheShare;
use crate::open::prepared_connection::PreparedConnection;
use crate::open::transaction::{StaticStatement, Transaction};
use crate::system::clock;

/// How old a snapshot may be, and how soon a reader must be used again to keep its own.
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
    /// The last used is used next: it is the likeliest to have a snapshot, and a warm cache.
    idle: Vec<ReadConnection>,
    /// Idle ones and those in use.
    open_count: usize,
    /// Those of them whose connection is being made.
    opening_count: usize,
    /// When the reads under way began.
    reading: Vec<Instant>,
    waiting_count: usize,
    /// No read begins.
    is_held: bool,
    is_closed: bool,
}

/// One read-only connection.
pub(crate) struct ReadConnection {
    session: PreparedConnection,
    cache: CacheShare,
    /// Its transaction, if one is open.
    snapshot: Option<Snapshot>,
    used: Option<Instant>,
}

/// What a read leaves to be done.
#[derive(Clone, Copy)]
pub(crate) struct ReadOutcome {
    /// A snapshot, which is to be released later.
    pub(crate) keeps_snapshot: bool,
    /// It failed, and SQLite said of the file that it is damaged.
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

    /// Runs `f` in a read transaction that sees at least `epoch`. `open` makes a reader when none
    /// is idle. A closure that reads from the same database inside itself takes a second
    /// connection, and waits for ever if there is none.
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

    /// How long the read has been running that began first.
    pub(crate) fn longest_read(&self, now: Instant) -> Duration {
        let began = self.lock().reading.iter().min().copied();
        began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }

    /// Closes the connections that nobody uses. `true`: none is left.
    pub(crate) fn close_idle(&self) -> bool {
        let mut pool = self.lock();
        pool.open_count -= pool.idle.len();
        let idle = std::mem::take(&mut pool.idle);
        let is_none_left = pool.open_count == 0;
        drop(pool);
        drop(idle);
        is_none_left
    }

    /// Ends the snapshots that nobody uses and that were begun before `time`. `true`: there are
    /// younger ones.
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

    /// Lets no read begin until `resume`, waits for those under way, though not past `until`, and
    /// ends all snapshots that nobody uses.
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

    /// Reads begin again.
    pub(crate) fn resume(&self) {
        self.lock().is_held = false;
        self.returned.notify_all();
    }

    /// Closes what is idle at once, and what is in use when it comes back. Afterwards none is opened,
    /// so that nothing makes the files anew that closing the database takes away.
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
        // From here on the lease gives its place back, whether or not a connection comes to fill
        // it.
        let _opening = OpeningReader(self);
        let mut lease = ReaderLease { readers: self, reader: None, began, keeps_snapshot: false };
        lease.reader = Some(open()?);
        // The connection is gone again before `close` goes on.
        if self.lock().is_closed { Err(Error::Closed) } else { Ok(lease) }
    }

    fn lock(&self) -> MutexGuard<'_, ReaderPoolState> {
        self.pool.lock().expect("no code panics while it holds this lock")
    }
}

/// A connection that is being made; ends when dropped, also after a panic.
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

    /// Whether the last call that failed says that the file is damaged.
    fn has_met_damage(&self) -> bool {
        is_damage_code(sqlite3mc_sys::last_error(self.session.connection()))
    }

    /// Makes sure of a transaction that is recent enough.
    fn begin(&mut self, epoch: u64, now: Instant) -> Result<()> {
        let is_recent =
            |snapshot: Snapshot| snapshot.epoch == epoch && now - snapshot.begun < SNAPSHOT_AGE_MAX;
        if self.snapshot.is_some_and(is_recent) {
            return Ok(());
        }
        if self.snapshot.is_some() && !self.end() {
            return Err(Error::Closed);
        }
        // The first statement takes the snapshot: later than `epoch` was read.
        self.session.run(&BEGIN).map_err(sqlite("begin a read"))?;
        self.snapshot = Some(Snapshot { epoch, begun: now });
        Ok(())
    }

    /// Ends its transaction. One that cannot is not used again.
    fn end(&mut self) -> bool {
        self.snapshot = None;
        self.cache.measure(self.session.connection());
        self.session.clear_parameters();
        self.session.connection().is_autocommit() || self.session.run(&ROLLBACK).is_ok()
    }
}

/// A reader taken from the pool, and its place in the count. It goes back when dropped, also after a
/// panic in its closure.
struct ReaderLease<'a> {
    readers: &'a ReaderPool,
    reader: Option<ReadConnection>,
    /// As it stands in the pool's list.
    began: Instant,
    keeps_snapshot: bool,
}

impl ReaderLease<'_> {
    fn reader(&mut self) -> &mut ReadConnection {
        self.reader.as_mut().expect("only drop takes it")
    }

    /// After a read that began at `now`. `true`: the reader keeps its snapshot.
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
        // A notification is a system call, even where nobody waits.
        let is_awaited = pool.waiting_count > 0;
        drop(pool);
        drop(closing);
        if is_awaited {
            // Those who want it, and the writer, who waits for all.
            self.readers.returned.notify_all();
        }
    }
}
