//! What a database gets when it is idle: which of it is due, and what has been done so far.
//!
//! In this order: a look at the part of the file that is due to be scrubbed, statistics for the query
//! planner, free pages given back to the disk, the WAL moved into the file and cut to nothing.
//!
//! # Invariants
//! - One run at a time; none begins once the database is closed, and closing waits for the one
//!   under way, which sees that and gives up.
//!
//! # Not here
//! - Doing it → `database/idle_maintenance.rs`, `database/replace_file.rs`,
//!   `database/scrub.rs`. When a database is idle → `maintenance/idle.rs`.

pub(crate) mod compact_copy;
pub(crate) mod delay_queue;
pub(crate) mod disk_reserve;
pub(crate) mod idle;
pub(crate) mod replace_file;
pub(crate) mod scheduler;
pub(crate) mod vacuum;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::system::clock;

/// The share of free pages above which they are given back in place, and above which the file is
/// written anew.
const FRAGMENTATION_STEPS: f64 = 0.15;
const FRAGMENTATION_WHOLE: f64 = 0.25;

/// With fewer free pages than this (1 MiB of the usual size), there is nothing worth the work.
const FREE_PAGES_MIN: u64 = 256;

/// Pages of a database file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    pub(crate) bytes_each: u64,
    pub(crate) all: u64,
    pub(crate) free: u64,
}

impl PageCounts {
    /// The share of the file that holds nothing, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "SQLite has at most 2³² pages")]
    pub(crate) fn fragmentation(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.free as f64 / self.all as f64 }
    }
}

/// What can be done about free pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VacuumCapabilities {
    /// `auto_vacuum` is INCREMENTAL.
    pub(crate) has_steps: bool,
    /// The file is in WAL mode and this process's alone, so that another can take its place.
    pub(crate) may_swap: bool,
}

/// What is to be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VacuumPlan {
    Nothing,
    /// `PRAGMA incremental_vacuum`, a few pages at a time.
    Incremental,
    /// A compact copy in the file's place.
    Full,
}

pub(crate) fn plan_vacuum(pages: PageCounts, means: VacuumCapabilities) -> VacuumPlan {
    let fragmentation = pages.fragmentation();
    if pages.free < FREE_PAGES_MIN || fragmentation <= FRAGMENTATION_STEPS {
        return VacuumPlan::Nothing;
    }
    match means {
        VacuumCapabilities { has_steps: false, may_swap: false } => VacuumPlan::Nothing,
        VacuumCapabilities { has_steps: false, may_swap: true } => VacuumPlan::Full,
        VacuumCapabilities { may_swap: true, .. } if fragmentation > FRAGMENTATION_WHOLE => {
            VacuumPlan::Full
        }
        VacuumCapabilities { .. } => VacuumPlan::Incremental,
    }
}

/// What one run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceRun {
    /// The planner's statistics were looked at, and renewed where they were stale.
    pub is_optimized: bool,
    /// Pages by which the file has become shorter.
    pub pages_returned: u64,
    /// The file was written anew.
    pub is_compacted: bool,
    /// The WAL was cut to nothing.
    pub is_truncated: bool,
    /// Pages that were read to see whether they are damaged.
    pub pages_scrubbed: u64,
}

/// What all runs have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceStats {
    /// Runs, whatever they found to do.
    pub runs: u64,
    /// Times that the planner's statistics were looked at.
    pub optimized: u64,
    /// Times that a WAL was cut to nothing.
    pub truncated: u64,
    /// Pages given back to the disk.
    pub pages_returned: u64,
    /// Files written anew.
    pub compacted: u64,
    /// Pages read to see whether they are damaged.
    pub pages_scrubbed: u64,
    /// Times that a file was found damaged.
    pub damaged: u64,
    /// Damaged files that were quarantined, with a new one in their place.
    pub repaired: u64,
}

/// Counts what runs have done: of one database, or of all.
#[derive(Default)]
pub(crate) struct MaintenanceCounters {
    runs: AtomicU64,
    optimized: AtomicU64,
    truncated: AtomicU64,
    pages_returned: AtomicU64,
    compacted: AtomicU64,
    pages_scrubbed: AtomicU64,
    damaged: AtomicU64,
    repaired: AtomicU64,
}

impl MaintenanceCounters {
    pub(crate) fn add(&self, done: MaintenanceRun) {
        let add = |counter: &AtomicU64, count| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.runs, 1);
        add(&self.optimized, done.is_optimized.into());
        add(&self.truncated, done.is_truncated.into());
        add(&self.pages_returned, done.pages_returned);
        add(&self.compacted, done.is_compacted.into());
        add(&self.pages_scrubbed, done.pages_scrubbed);
    }

    pub(crate) fn add_damaged(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_repaired(&self) {
        self.repaired.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> MaintenanceStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MaintenanceStats {
            runs: read(&self.runs),
            optimized: read(&self.optimized),
            truncated: read(&self.truncated),
            pages_returned: read(&self.pages_returned),
            compacted: read(&self.compacted),
            pages_scrubbed: read(&self.pages_scrubbed),
            damaged: read(&self.damaged),
            repaired: read(&self.repaired),
        }
    }
}

/// One database's maintenance.
#[derive(Default)]
pub(crate) struct MaintenanceState {
    /// Taken for a run; true once the database is closed.
    is_closed: Mutex<bool>,
    /// The same, for a run that is under way.
    is_closing: AtomicBool,
    /// The database stands in the queue of those that are looked at when they may be idle.
    is_watched: AtomicBool,
    ended: Mutex<Option<Instant>>,
    pub(crate) counters: MaintenanceCounters,
}

impl MaintenanceState {
    /// `None` once the database is closed. Waits for the run that is under way.
    pub(crate) fn begin(&self) -> Option<MutexGuard<'_, bool>> {
        let is_closed = self.lock();
        (!*is_closed).then_some(is_closed)
    }

    pub(crate) fn end(&self, done: MaintenanceRun) {
        self.counters.add(done);
        *self.ended.lock().expect(UNPOISONED) = Some(clock::now());
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Waits for a run that is under way; none begins from here on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        *self.lock() = true;
    }

    /// Notes a write. `true`: the caller must put the database into the queue.
    pub(crate) fn watch(&self) -> bool {
        !self.is_watched.load(Ordering::Relaxed) && !self.is_watched.swap(true, Ordering::AcqRel)
    }

    /// The database has come out of the queue; the next write puts it in again.
    pub(crate) fn unwatch(&self) {
        self.is_watched.swap(false, Ordering::AcqRel);
    }

    /// How long ago the last run ended.
    pub(crate) fn age(&self) -> Option<Duration> {
        let ended = *self.ended.lock().expect(UNPOISONED);
        ended.map(|ended| clock::now().saturating_duration_since(ended))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock().expect("a run does not panic")
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: VacuumCapabilities = VacuumCapabilities { has_steps: true, may_swap: true };
    const STEPS: VacuumCapabilities = VacuumCapabilities { has_steps: true, may_swap: false };
    const SWAP: VacuumCapabilities = VacuumCapabilities { has_steps: false, may_swap: true };
    const NEITHER: VacuumCapabilities = VacuumCapabilities { has_steps: false, may_swap: false };

    fn due(free: u64, means: VacuumCapabilities) -> VacuumPlan {
        plan_vacuum(PageCounts { bytes_each: 4_096, all: 10_000, free }, means)
    }

    #[test]
    fn what_is_due_follows_the_share_of_free_pages() {
        for means in [ALL, STEPS, SWAP, NEITHER] {
            assert_eq!(due(1_500, means), VacuumPlan::Nothing, "{means:?}");
        }
        for free in [1_501, 2_500, 2_501, 9_999] {
            let is_large = free > 2_500;
            let best = if is_large { VacuumPlan::Full } else { VacuumPlan::Incremental };
            assert_eq!(due(free, ALL), best);
            assert_eq!(due(free, STEPS), VacuumPlan::Incremental);
            assert_eq!(due(free, SWAP), VacuumPlan::Full);
            assert_eq!(due(free, NEITHER), VacuumPlan::Nothing);
        }
    }

    #[test]
    fn a_small_file_is_left_alone() {
        let pages = |free| PageCounts { bytes_each: 4_096, all: 300, free };
        assert_eq!(plan_vacuum(pages(FREE_PAGES_MIN - 1), ALL), VacuumPlan::Nothing);
        assert_eq!(plan_vacuum(pages(FREE_PAGES_MIN), ALL), VacuumPlan::Full);
        assert_eq!(plan_vacuum(PageCounts::default(), ALL), VacuumPlan::Nothing);
    }
}
