//! Decides which maintenance an idle database needs, and counts what has been done so far.
//!
//! Maintenance does, in this order: it scrubs the share of the file that is due, updates statistics
//! for the query planner, returns free pages to the disk, moves the WAL into the file and truncates
//! it.
//!
//! # Invariants
//! - Only one run takes place at a time. None begins once the database is closed, and closing waits
//!   for a running one, which detects that and gives up.
//!
//! # Not here
//! - The work itself → `database/idle_maintenance.rs`, `database/replace_file.rs`,
//!   `database/scrub.rs`. The detection of idle databases → `maintenance/idle.rs`.

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

/// The share of free pages above which they are returned in place, and the share above which the
/// file is rewritten (`FRAGMENTATION_WHOLE`).
const FRAGMENTATION_STEPS: f64 = 0.15;
const FRAGMENTATION_WHOLE: f64 = 0.25;

/// The number of free pages (1 MiB of the usual size) below which a vacuum is not worth the work.
const FREE_PAGES_MIN: u64 = 256;

/// The numbers of pages of a database file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    pub(crate) bytes_each: u64,
    pub(crate) all: u64,
    pub(crate) free: u64,
}

impl PageCounts {
    /// Returns the share of the file that holds no data, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "SQLite has at most 2³² pages")]
    pub(crate) fn fragmentation(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.free as f64 / self.all as f64 }
    }
}

/// The ways in which free pages can be returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VacuumCapabilities {
    /// Whether `auto_vacuum` is INCREMENTAL.
    pub(crate) has_steps: bool,
    /// Whether the file is in WAL mode and only this process uses it, so that a copy can replace
    /// it.
    pub(crate) may_swap: bool,
}

/// The way in which free pages are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VacuumPlan {
    Nothing,
    /// The vacuum uses `PRAGMA incremental_vacuum`, a few pages at a time.
    Incremental,
    /// The vacuum replaces the file by a compact copy.
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

/// The work that one run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceRun {
    /// Whether the planner's statistics were checked, and renewed where they were stale.
    pub is_optimized: bool,
    /// The number of pages by which the file has become shorter.
    pub pages_returned: u64,
    /// Whether the file was rewritten.
    pub is_compacted: bool,
    /// Whether the WAL was truncated to zero bytes.
    pub is_truncated: bool,
    /// The number of pages that were read to see whether they are damaged.
    pub pages_scrubbed: u64,
}

/// The work that all runs have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceStats {
    /// The number of runs, whatever was due in them.
    pub runs: u64,
    /// The number of times that the planner's statistics were checked.
    pub optimized: u64,
    /// The number of times that a WAL was truncated to zero bytes.
    pub truncated: u64,
    /// The number of pages that were returned to the disk.
    pub pages_returned: u64,
    /// The number of times that a file was rewritten.
    pub compacted: u64,
    /// The number of pages that were read to see whether they are damaged.
    pub pages_scrubbed: u64,
    /// The number of times that a file was found damaged.
    pub damaged: u64,
    /// The number of damaged files that were quarantined and replaced by a new one.
    pub repaired: u64,
}

/// Counters of the work that runs have done, in one database or in all.
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

/// The state of one database's maintenance.
#[derive(Default)]
pub(crate) struct MaintenanceState {
    /// A lock that each run holds; `true` once the database is closed.
    is_closed: Mutex<bool>,
    /// Whether the database is being closed, which a running run checks.
    is_closing: AtomicBool,
    /// Whether the database is in the queue of those that are checked when they may be idle.
    is_watched: AtomicBool,
    ended: Mutex<Option<Instant>>,
    pub(crate) counters: MaintenanceCounters,
}

impl MaintenanceState {
    /// Begins a run, after waiting for a running one. Returns `None` once the database is closed.
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

    /// Waits for a running run, and prevents all further ones.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        *self.lock() = true;
    }

    /// Records a write. Returns `true` if the caller must put the database into the queue.
    pub(crate) fn watch(&self) -> bool {
        !self.is_watched.load(Ordering::Relaxed) && !self.is_watched.swap(true, Ordering::AcqRel)
    }

    /// Records that the database has left the queue; the next write puts it in again.
    pub(crate) fn unwatch(&self) {
        self.is_watched.swap(false, Ordering::AcqRel);
    }

    /// Returns the time since the last run ended.
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
