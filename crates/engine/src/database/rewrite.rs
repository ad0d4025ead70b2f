//! Rewrites a file on request, however few of its pages are free, so that deleted and replaced
//! content is on none of its pages any more.
//!
//! # Not here
//! - Rewriting a file during maintenance, to free space → `idle_maintenance.rs`.

use crate::error::{Error, Result};
use crate::maintenance::MaintenanceRun;

use super::Database;
use super::idle_maintenance::is_lock_contention;

/// The number of attempts. A write during the copy makes it worthless: under continuous writing,
/// all attempts fail, within some milliseconds each.
const TRIES_MAX: u32 = 20;

impl Database {
    /// Rewrites the file: deleted and replaced content is in neither it nor its WAL afterwards.
    ///
    /// Returns [`Error::Busy`] if writes, a long read or another program prevented every attempt,
    /// and [`Error::NotEnoughSpace`] if the disk has no space for a copy.
    pub fn rewrite(&self) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let _run = self.maintenance.begin().ok_or(Error::Closed)?;
            let mut done = MaintenanceRun::default();
            let result = self.rewrite_once(&mut done);
            self.maintenance.end(done);
            self.context.maintenance_totals.add(done);
            match result {
                Ok(()) if done.is_compacted => return Ok(()),
                Ok(()) => {}
                Err(error) if is_lock_contention(&error) => {}
                Err(error) => return Err(error),
            }
            self.check_unpoisoned()?;
        }
        Err(Error::Busy)
    }

    fn rewrite_once(&self, done: &mut MaintenanceRun) -> Result<()> {
        self.check_unpoisoned()?;
        let batches = self.batches();
        let db = self.connect_for_maintenance(batches)?;
        if !self.vacuum_capabilities(&db)?.may_swap {
            return Err(Error::Busy);
        }
        let pages = self.measure_on(&db)?;
        let (copy, seen) = self.compact(&db, batches)?;
        // This connection has the file open.
        drop(db);
        self.finish_compaction(copy, seen, pages, done)
    }
}
