//! Reports on a registry and its open databases. No function here opens a file, or counts as using
//! one.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::database::Database;
use crate::maintenance::MaintenanceStats;
use crate::stats::{DatabaseHealth, EngineTotals};

use super::{DatabaseSlot, Databases, canonical};

impl Databases {
    /// Returns the number of open databases.
    pub fn open_count(&self) -> usize {
        self.registry().open_count
    }

    /// Returns the bytes that all page caches hold, as measured after each use.
    pub fn cache_bytes(&self) -> usize {
        self.context.cache_total.bytes()
    }

    /// Returns the database in a file, if it is open.
    pub fn get_open(&self, path: &Path) -> Option<Arc<Database>> {
        match self.registry().slots.peek(&canonical(path).ok()?) {
            Some(DatabaseSlot::Open(database)) => Some(Arc::clone(database)),
            _ => None,
        }
    }

    /// Returns every open database, the most recently used first. They can be closed in the
    /// meantime.
    pub fn list_open(&self) -> Vec<Weak<Database>> {
        let open = |slot: &DatabaseSlot| match slot {
            DatabaseSlot::Open(database) => Some(Arc::downgrade(database)),
            DatabaseSlot::Opening | DatabaseSlot::Closing => None,
        };
        self.registry().slots.iter().filter_map(|(_, slot)| open(slot)).collect()
    }

    /// Returns the state of the files of each open database, with its path.
    pub fn health(&self) -> Vec<(PathBuf, DatabaseHealth)> {
        self.filter_open(|database| Some(database.health()))
    }

    /// Returns the open databases that refuse writes until they have recovered, each with the
    /// cause.
    pub fn list_poisoned(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.filter_open(Database::poison_cause)
    }

    /// Returns the open databases whose backup has stalled, each with the backup's command and
    /// process.
    pub fn stalled_backups(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.filter_open(Database::stalled_backup)
    }

    fn filter_open<T>(&self, of: impl Fn(&Database) -> Option<T>) -> Vec<(PathBuf, T)> {
        let databases = self.list_open();
        // One database is held at a time, so that the others can be closed.
        let databases = databases.iter().filter_map(Weak::upgrade);
        databases
            .filter_map(|database| Some((database.path().to_owned(), of(&database)?)))
            .collect()
    }

    /// Returns the open databases of which a part does not read back as it was written, and has not
    /// been repaired.
    pub fn list_damaged(&self) -> Vec<PathBuf> {
        let health = self.health();
        health.into_iter().filter(|(_, health)| health.is_damaged).map(|(path, _)| path).collect()
    }

    /// Returns whether the disk is full: a write found it full, and there is not enough free space
    /// again. Callers should then refuse to store new data, so that the reserve serves checkpoints
    /// and deletions. Always `false` unless a reserve is kept.
    pub fn is_disk_full(&self) -> bool {
        self.context.reserve.is_released()
    }

    /// Returns the work that maintenance has done in all databases, also in those that are closed.
    pub fn maintenance(&self) -> MaintenanceStats {
        self.context.maintenance_totals.stats()
    }

    /// Returns the counters of all databases, also of those that are closed.
    pub fn totals(&self) -> EngineTotals {
        let totals = &self.context.totals;
        EngineTotals {
            transactions: totals.transactions.load(Ordering::Relaxed),
            failed: totals.failed.load(Ordering::Relaxed),
            refused: totals.refused.load(Ordering::Relaxed),
            batches: totals.batches.load(Ordering::Relaxed),
            flushes: totals.flushes.load(Ordering::Relaxed),
        }
    }
}
