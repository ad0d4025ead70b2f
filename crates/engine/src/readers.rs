//! The pool of read-only connections of one database.
//!
//! A read runs on the caller's own thread, on a connection that it has to itself for that long,
//! inside one read transaction. Connections are opened as they are needed, up to a limit; past it,
//! callers wait in turn.
//!
//! # Invariants
//! - A connection in the pool has no transaction open, also after a panic in the reader's closure.
//!
//! # Not here
//! - Writes → `writer.rs`. Which key and settings a connection gets → `open.rs`.

use std::sync::{Condvar, Mutex, MutexGuard};

use rusqlite::Connection;

use crate::cache::CacheShare;
use crate::error::{Error, Result, sqlite};

pub(crate) struct Readers {
    pool: Mutex<Pool>,
    returned: Condvar,
    count_max: usize,
}

struct Pool {
    idle: Vec<Reader>,
    /// Idle ones and those in use.
    open_count: usize,
    is_closed: bool,
}

impl Readers {
    pub(crate) fn new(count_max: usize) -> Self {
        assert!(count_max > 0, "reads need a connection");
        let pool = Pool { idle: Vec::new(), open_count: 0, is_closed: false };
        Self { pool: Mutex::new(pool), returned: Condvar::new(), count_max }
    }

    /// Runs `f` in a read transaction. `open` makes a reader when none is idle. A closure that
    /// reads from the same database inside itself takes a second connection, and waits for ever if
    /// there is none.
    pub(crate) fn read<T, E: From<Error>>(
        &self,
        open: impl FnOnce() -> Result<Reader>,
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let lease = self.lease(open)?;
        let connection = lease.connection();
        run(connection, "BEGIN").map_err(sqlite("begin a read"))?;
        f(connection)
    }

    pub(crate) fn open_count(&self) -> usize {
        self.lock().open_count
    }

    /// Closes what is idle at once, and what is in use when it comes back.
    pub(crate) fn close(&self) {
        let mut pool = self.lock();
        pool.is_closed = true;
        pool.open_count -= pool.idle.len();
        let idle = std::mem::take(&mut pool.idle);
        drop(pool);
        drop(idle);
        self.returned.notify_all();
    }

    fn lease(&self, open: impl FnOnce() -> Result<Reader>) -> Result<Lease<'_>> {
        let mut pool = self.lock();
        loop {
            if pool.is_closed {
                return Err(Error::Closed);
            }
            if let Some(reader) = pool.idle.pop() {
                return Ok(Lease { readers: self, reader: Some(reader) });
            }
            if pool.open_count < self.count_max {
                break;
            }
            pool = self.returned.wait(pool).expect("no code panics while it holds this lock");
        }
        pool.open_count += 1;
        drop(pool);
        // From here on the lease gives its place back, whether or not a connection comes to fill
        // it.
        let mut lease = Lease { readers: self, reader: None };
        lease.reader = Some(open()?);
        Ok(lease)
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("no code panics while it holds this lock")
    }
}

/// One read-only connection.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) cache: CacheShare,
}

/// A reader taken from the pool, and its place in the count.
struct Lease<'a> {
    readers: &'a Readers,
    reader: Option<Reader>,
}

impl Lease<'_> {
    fn connection(&self) -> &Connection {
        &self.reader.as_ref().expect("only drop takes it").connection
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let clean = self.reader.take().and_then(cleaned);
        let mut pool = self.readers.lock();
        match clean {
            Some(reader) if !pool.is_closed => pool.idle.push(reader),
            closing => {
                pool.open_count -= 1;
                drop(pool);
                drop(closing);
            }
        }
        self.readers.returned.notify_one();
    }
}

/// Ends the reader's transaction. One that cannot is not used again.
fn cleaned(mut reader: Reader) -> Option<Reader> {
    let Reader { connection, cache } = &mut reader;
    cache.measure(connection);
    let is_clean = connection.is_autocommit() || run(connection, "ROLLBACK").is_ok();
    is_clean.then_some(reader)
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
