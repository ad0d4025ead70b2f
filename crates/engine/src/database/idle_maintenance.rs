//! Maintains one database while its writer and readers continue.
//!
//! A step that writes takes the database's turn first, as a worker would, for a few milliseconds at
//! a time: no transaction meets a lock, and none waits longer than for one step. All other long
//! work is interrupted as soon as a write arrives.
//!
//! # Invariants
//! - No maintenance runs once a write has arrived, until the database is idle again.
//! - A poisoned database is not changed.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::replace_file::FileVersion;
use super::{Database, Weak};
use crate::error::{Error, Result, sqlite};
use crate::maintenance::compact_copy::CompactCopy;
use crate::maintenance::{MaintenanceRun, PageCounts, VacuumCapabilities, VacuumPlan, plan_vacuum};
use crate::open::profile;
use crate::readers::SNAPSHOT_AGE_MAX;
use crate::system::clock;
use crate::system::side_files::wal_bytes;
use crate::{checkpoint, open};

/// The statements that update the planner's statistics. Limits between 100 and 1000 work well
/// (`https://sqlite.org/lang_analyze.html`); `optimize` with 0x10002 checks all tables, not only
/// those that this new connection has read.
const OPTIMIZE: &str = "PRAGMA analysis_limit = 400; PRAGMA optimize = 0x10002";

/// The number of pages that are returned at a time: at most half a megabyte to move.
const STEP_PAGES: u32 = 128;

/// The number of steps after which the WAL is copied, so that it does not grow to the size of the
/// moved pages.
const STEPS_PER_CHECKPOINT: u32 = 8;

/// The interval at which an interruptible statement checks for writes, in SQLite's virtual
/// instructions: some tens of microseconds.
pub(super) const INSTRUCTIONS_PER_LOOK: i32 = 1_000;

/// The turn that a worker would have: no batch runs while it is held. When it is dropped, waiting
/// writes are scheduled.
pub(super) struct WriterPause<'a>(pub(super) &'a Database);

impl Drop for WriterPause<'_> {
    fn drop(&mut self) {
        if self.0.queue.unschedule() {
            self.0.schedule(self.0.this.upgrade().expect("who maintains it holds it"));
        }
    }
}

impl Database {
    /// Runs the maintenance that is due, as if the database had been idle for
    /// [`EngineLimits::idle_time`](crate::EngineLimits::idle_time). Stops without an error when a
    /// write arrives, and skips steps that a long read or another program blocks.
    ///
    /// Returns [`Error::Closed`], [`Error::Poisoned`], or an error of SQLite or the disk.
    pub fn maintain(&self) -> Result<MaintenanceRun> {
        let _run = self.maintenance.begin().ok_or(Error::Closed)?;
        let batches = self.batches();
        let mut done = MaintenanceRun::default();
        let result = self.run_maintenance(batches, &mut done);
        self.maintenance.end(done);
        self.context.maintenance_totals.add(done);
        let Err(error) = result else { return Ok(done) };
        if is_lock_contention(&error) || self.is_preempted(batches) {
            self.check_unpoisoned().map(|()| done)
        } else {
            self.note_failure("maintenance", &error);
            Err(error)
        }
    }

    /// Maintains a database that the idle watcher returns, if no batch has run since `batches`.
    pub(crate) fn check_idle(&self, batches: u64) {
        self.maintenance.unwatch();
        if self.batches() != batches {
            self.measure();
            self.watch_idleness();
            return;
        }
        match self.maintain() {
            Ok(_) | Err(Error::Closed | Error::Poisoned { .. }) => {}
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "maintenance");
            }
        }
    }

    /// Puts the database into the idle watcher's queue, after a write or other activity.
    pub(super) fn watch_idleness(&self) {
        if self.maintenance.watch() {
            self.context.idle_watcher.watch(self.batches(), Weak::clone(&self.this));
        }
    }

    fn run_maintenance(&self, batches: u64, done: &mut MaintenanceRun) -> Result<()> {
        self.check_unpoisoned()?;
        let db = self.connect_for_maintenance(batches)?;
        // Errors here are returned last: the next steps free space, the lack of which may have
        // caused them.
        let scrubbed = self.scrub(&db, batches, done);
        self.check_unpoisoned()?;
        let optimized = self.optimize(&db).map(|is_optimized| done.is_optimized = is_optimized);
        let prepared = scrubbed.and(optimized);
        let pages = self.measure_on(&db)?;
        match plan_vacuum(pages, self.vacuum_capabilities(&db)?) {
            // A damaged file is not rewritten as if it were whole.
            _ if self.damage.description().is_some() => {}
            VacuumPlan::Nothing => {}
            VacuumPlan::Incremental => self.vacuum_incrementally(&db, done)?,
            VacuumPlan::Full => match self.compact(&db, batches) {
                Ok((copy, seen)) => {
                    // This connection has the file open.
                    drop(db);
                    return self.finish_compaction(copy, seen, pages, done).and(prepared);
                }
                Err(error @ Error::NotEnoughSpace { .. }) => {
                    tracing::warn!(path = %self.path.display(), %error, "not compacted");
                    if self.vacuum_capabilities(&db)?.has_steps {
                        self.vacuum_incrementally(&db, done)?;
                    }
                }
                Err(error) => return Err(error),
            },
        }
        done.is_truncated = self.truncate_wal(&db)?;
        prepared
    }

    pub(super) fn finish_compaction(
        &self,
        copy: CompactCopy,
        seen: FileVersion,
        before: PageCounts,
        done: &mut MaintenanceRun,
    ) -> Result<()> {
        match self.replace_file(copy, seen) {
            // The WAL of the new file is empty.
            Ok(after) => {
                done.is_compacted = true;
                done.pages_returned = before.all.saturating_sub(after.all);
                Ok(())
            }
            Err(Error::Busy) => {
                let db = self.connect_for_maintenance(seen.batches)?;
                done.is_truncated = self.truncate_wal(&db)?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the turn that a worker would have. Returns `None` if a write has arrived, or on
    /// closing.
    pub(super) fn pause_writer(&self) -> Option<WriterPause<'_>> {
        let until = clock::now() + SNAPSHOT_AGE_MAX;
        // A caller that has just been answered finds the worker at the end of its turn.
        while !self.queue.try_schedule() {
            let is_hopeless = !self.queue.is_empty() || self.maintenance.is_closing();
            if is_hopeless || clock::now() > until {
                return None;
            }
            thread::yield_now();
        }
        Some(WriterPause(self))
    }

    /// Checks whether something more important than maintenance has arrived since `batches`.
    pub(super) fn is_preempted(&self, batches: u64) -> bool {
        self.batches() != batches
            || !self.queue.is_empty()
            || self.maintenance.is_closing()
            || self.poison.is_set()
    }

    pub(super) fn check_unpoisoned(&self) -> Result<()> {
        self.poison.cause().map_or(Ok(()), |cause| Err(Error::Poisoned { cause }))
    }

    /// Interrupts the statements of this connection when something more important arrives.
    pub(super) fn interrupt(&self, db: &mut Connection, batches: u64) -> rusqlite::Result<()> {
        let this = Weak::clone(&self.this);
        let is_wanted =
            move || this.upgrade().is_none_or(|database| database.is_preempted(batches));
        db.progress_handler(INSTRUCTIONS_PER_LOOK, Some(is_wanted))
    }

    pub(super) fn batches(&self) -> u64 {
        self.counters.batches.load(Ordering::Relaxed)
    }

    /// Opens a connection that waits for no lock, and gives up instead.
    pub(super) fn connect_for_maintenance(&self, batches: u64) -> Result<Connection> {
        let mut db = open::connect(&self.path, &self.encryption, self.cipher, self.profile, false)?;
        db.busy_timeout(Duration::ZERO).map_err(sqlite("busy_timeout"))?;
        db.pragma_update(None, "wal_autocheckpoint", 0).map_err(sqlite("wal_autocheckpoint"))?;
        self.interrupt(&mut db, batches).map_err(sqlite("watch"))?;
        Ok(db)
    }

    pub(super) fn vacuum_capabilities(&self, db: &Connection) -> Result<VacuumCapabilities> {
        const INCREMENTAL: &str = "2";
        let read = |name| profile::read(db, name).map_err(sqlite(name));
        Ok(VacuumCapabilities {
            has_steps: read("auto_vacuum")? == INCREMENTAL,
            may_swap: self.is_sole_writer && read("journal_mode")? == "wal",
        })
    }

    fn optimize(&self, db: &Connection) -> Result<bool> {
        let Some(_turn) = self.pause_writer() else { return Ok(false) };
        db.execute_batch(OPTIMIZE).map_err(sqlite("optimize"))?;
        Ok(true)
    }

    fn vacuum_incrementally(&self, db: &Connection, done: &mut MaintenanceRun) -> Result<()> {
        let sql = format!("PRAGMA incremental_vacuum({STEP_PAGES})");
        let mut before = self.measure_on(db)?;
        for step in 1.. {
            let Some(turn) = self.pause_writer() else { break };
            // The statement returns a row for each page, and all of them must be stepped through.
            let mut statement = db.prepare_cached(&sql).map_err(sqlite("incremental_vacuum"))?;
            let mut rows = statement.query([]).map_err(sqlite("incremental_vacuum"))?;
            while rows.next().map_err(sqlite("incremental_vacuum"))?.is_some() {}
            drop(turn);
            let after = self.measure_on(db)?;
            done.pages_returned += before.all.saturating_sub(after.all);
            if after.free == 0 || after.all == before.all {
                break;
            }
            before = after;
            if step % STEPS_PER_CHECKPOINT == 0
                && let Some(_pass) = self.checkpoint_guard()
            {
                open::copy_wal(db)?;
            }
        }
        Ok(())
    }

    fn truncate_wal(&self, db: &Connection) -> Result<bool> {
        if wal_bytes(&self.path) == 0 {
            return Ok(false);
        }
        let Some(_pass) = self.checkpoint_guard() else { return Ok(false) };
        // A pass would block the truncation.
        let Some(_passes) = self.checkpoints.suspend() else { return Ok(false) };
        open::copy_wal(db)?;
        let Some(_turn) = self.pause_writer() else { return Ok(false) };
        self.check_unpoisoned()?;
        let _held = self.pause_readers();
        checkpoint::truncate_wal(db)
    }

    /// Lets no read begin until the guard is dropped, and ends unused snapshots; waits a few
    /// milliseconds for running reads.
    pub(super) fn pause_readers(&self) -> ReadPause<'_> {
        self.readers.pause(clock::now() + SNAPSHOT_AGE_MAX);
        ReadPause(self)
    }

    /// Measures the page counts, if no batch is running.
    fn measure(&self) {
        let Some(_turn) = self.pause_writer() else { return };
        if let Some(writer) = self.writer().as_ref()
            && let Err(error) = self.measure_on(writer.connection())
        {
            tracing::debug!(path = %self.path.display(), %error, "cannot count pages");
        }
    }

    pub(super) fn measure_on(&self, db: &Connection) -> Result<PageCounts> {
        let number = |name: &'static str| -> Result<u64> {
            let value = profile::read(db, name).map_err(sqlite(name))?;
            Ok(value.parse().expect("SQLite answers with a count"))
        };
        let pages = PageCounts {
            bytes_each: number("page_size")?,
            all: number("page_count")?,
            free: number("freelist_count")?,
        };
        *self.pages.lock().expect("no code panics while it holds this lock") = pages;
        Ok(pages)
    }
}

/// A pause of all reads, which begin again when it is dropped.
pub(super) struct ReadPause<'a>(&'a Database);

impl Drop for ReadPause<'_> {
    fn drop(&mut self) {
        // Snapshots from here on need only the file.
        self.0.epoch.fetch_add(1, Ordering::Release);
        self.0.readers.resume();
    }
}

/// Checks whether another connection has a lock, or the operation was interrupted.
pub(super) fn is_lock_contention(error: &Error) -> bool {
    match error {
        Error::Busy => true,
        Error::Sqlite { source, .. } => matches!(
            source.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::OperationInterrupted
            )
        ),
        _ => false,
    }
}
