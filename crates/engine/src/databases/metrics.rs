//! What a registry tells about itself and its open databases. Nothing here opens a file, or counts as
//! using one.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::database::Database;
use crate::maintenance::MaintenanceStats;
use crate::stats::{DatabaseHealth, EngineTotals};

use super::{DatabaseSlot, Databases, canonical};

impl Databases {
    /// How many databases are open.
    pub fn open_count(&self) -> usize {
        self.registry().open_count
    }

    /// The memory that all page caches hold, as measured after each use.
    pub fn cache_bytes(&self) -> usize {
        self.context.cache_total.bytes()
    }

    /// The database in that file, if it is open.
    pub fn get_open(&self, path: &Path) -> Option<Arc<Database>> {
        match self.registry().slots.peek(&canonical(path).ok()?) {
            Some(DatabaseSlot::Open(database)) => Some(Arc::clone(database)),
            _ => None,
        }
    }

    /// Every open database, the one that was used last first. They can be closed meanwhile.
    pub fn list_open(&self) -> Vec<Weak<Database>> {
        let open = |slot: &DatabaseSlot| match slot {
            DatabaseSlot::Open(database) => Some(Arc::downgrade(database)),
            DatabaseSlot::Opening | DatabaseSlot::Closing => None,
        };
        self.registry().slots.iter().filter_map(|(_, slot)| open(slot)).collect()
    }

    /// How the files of each open database are, by path.
    pub fn health(&self) -> Vec<(PathBuf, DatabaseHealth)> {
        self.filter_open(|database| Some(database.health()))
    }

    /// The open databases that take no writes until they have recovered, each with the cause.
    pub fn list_poisoned(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.filter_open(Database::poison_cause)
    }

    /// The open databases that a backup copies which has stalled, each with its command and process.
    pub fn stalled_backups(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.filter_open(Database::stalled_backup)
    }

    fn filter_open<T>(&self, of: impl Fn(&Database) -> Option<T>) -> Vec<(PathBuf, T)> {
        let databases = self.list_open();
        // Held one at a time, so that the others can be closed meanwhile.
        let databases = databases.iter().filter_map(Weak::upgrade);
        databases
            .filter_map(|database| Some((database.path().to_owned(), of(&database)?)))
            .collect()
    }

    /// The open databases of which something does not read back as it was written, and that nothing
    /// has repaired.
    pub fn list_damaged(&self) -> Vec<PathBuf> {
        let health = self.health();
        health.into_iter().filter(|(_, health)| health.is_damaged).map(|(path, _)| path).collect()
    }

    /// Whether the disk is full: a write found it so, and there is not enough room again. Whoever
    /// stores new data should refuse to, so that the reserve serves checkpoints and deletions.
    /// Always false unless a reserve is kept.
    pub fn is_disk_full(&self) -> bool {
        self.context.reserve.is_released()
    }

    /// What maintenance has done, to all databases, also to those that are closed.
    pub fn maintenance(&self) -> MaintenanceStats {
        self.context.maintenance_totals.stats()
    }

    /// What all databases have done, also those that are closed.
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
