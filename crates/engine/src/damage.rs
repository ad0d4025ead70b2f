//! Detects damage, that is, pages of a file that do not read back as they were written, as a
//! failing disk leaves them, and decides how much of a file is due for scrubbing.
//!
//! A cipher that authenticates shows for each page whether it is what was written. For other files,
//! there is only SQLite's own check of the structure, which cannot be done in parts: it runs when
//! the whole file is due.
//!
//! # Invariants
//! - A page that holds no data is not damaged, whatever it contains: SQLite never reads it, and
//!   leaves some of these pages unwritten.
//!
//! # Not here
//! - The schedule of scrubs → `database/scrub.rs`. The reaction to damage → `database/repair.rs`.

pub(crate) mod repair;
pub(crate) mod salvage;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result, is_damage, sqlite};
use crate::maintenance::compact_copy::quick_check;
use crate::system::clock;

/// A hook that corrects rows that depend on missing ones, in the transaction that has copied the
/// others. It may run more than once.
pub type RepairHook = Arc<dyn Fn(&Connection) -> Result<()> + Send + Sync>;

/// The reaction to damage in a database.
#[derive(Clone, Default)]
pub enum DamagePolicy {
    /// Damage is not looked for.
    #[default]
    Ignore,
    /// Damage is looked for while the database is idle, and after errors that indicate it. It is
    /// reported in the log and in
    /// [`DatabaseHealth::is_damaged`](crate::DatabaseHealth::is_damaged).
    Report,
    /// Damage is looked for and reported, and the damaged file is quarantined as `NAME.damaged`.
    /// The content that can be read is copied to a new file with the schema of the migrations.
    ///
    /// A file that does not open with its key is quarantined, too: the key must be known to be
    /// right. While an earlier `NAME.damaged` exists, damage is only reported.
    Repair(RepairHook),
}

impl DamagePolicy {
    pub(crate) fn looks(&self) -> bool {
        !matches!(self, Self::Ignore)
    }
}

impl fmt::Debug for DamagePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ignore => "Ignore",
            Self::Report => "Report",
            Self::Repair(_) => "Repair",
        })
    }
}

/// The damage that is known of a database, and the policy for it.
pub(crate) struct DamageState {
    pub(crate) policy: DamagePolicy,
    found: Mutex<Option<Arc<str>>>,
    /// Whether the database is in the queue for a full scan.
    is_full_scan_due: AtomicBool,
    last_full_scan: Mutex<Option<Instant>>,
}

/// The time after a full scan in which errors cause no further one.
const LOOK_INTERVAL: Duration = Duration::from_mins(10);

impl DamageState {
    pub(crate) fn new(policy: DamagePolicy) -> Self {
        let is_full_scan_due = AtomicBool::new(false);
        Self { policy, found: Mutex::default(), is_full_scan_due, last_full_scan: Mutex::default() }
    }

    /// Returns a description of the damage, if there is any.
    pub(crate) fn description(&self) -> Option<Arc<str>> {
        self.found.lock().expect(UNPOISONED).clone()
    }

    pub(crate) fn set_found(&self, found: &str) {
        *self.found.lock().expect(UNPOISONED) = Some(found.into());
    }

    /// Clears the damage, after a repair or if it was not confirmed. The next error causes a full
    /// scan again.
    pub(crate) fn clear(&self) {
        *self.found.lock().expect(UNPOISONED) = None;
        *self.last_full_scan.lock().expect(UNPOISONED) = None;
    }

    /// Records an error that indicates damage. Returns `true` if the caller must schedule a full
    /// scan.
    pub(crate) fn suspect(&self) -> bool {
        let looked = *self.last_full_scan.lock().expect(UNPOISONED);
        let is_recent = looked.is_some_and(|looked| clock::now() - looked < LOOK_INTERVAL);
        self.policy.looks()
            && !is_recent
            && self.description().is_none()
            && !self.is_full_scan_due.swap(true, Ordering::AcqRel)
    }

    /// Records that a full scan has ended.
    pub(crate) fn record_full_scan(&self) {
        *self.last_full_scan.lock().expect(UNPOISONED) = Some(clock::now());
        self.is_full_scan_due.store(false, Ordering::Release);
    }
}

const UNPOISONED: &str = "no code panics while it holds this lock";

/// The smallest share of the file that is scrubbed at a time, because each scrub writes its
/// progress.
const SHARE_MIN: f64 = 1.0 / 16.0;

/// The maximum number of pages that are read before other databases get their turn: 64 MiB of the
/// usual page size.
const PAGES_PER_RUN_MAX: u32 = 16_384;

/// The progress of scrubbing in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrubProgress {
    /// The page that is read next, from 1.
    pub(crate) next_page: u32,
    /// The time up to which no pages were due, in milliseconds since 1970.
    pub(crate) scrubbed_until_ms: u64,
}

/// Returns how many pages of a file must be read now if all `pages_count` are read in `period`.
/// Zero means that it is too early.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the pages is no more than all of them"
)]
pub(crate) fn pages_due(
    progress: ScrubProgress,
    pages_count: u32,
    now_ms: u64,
    period: Duration,
) -> u32 {
    let elapsed = Duration::from_millis(now_ms.saturating_sub(progress.scrubbed_until_ms));
    let share = if period.is_zero() { 1.0 } else { elapsed.div_duration_f64(period).min(1.0) };
    if share < SHARE_MIN { 0 } else { (f64::from(pages_count) * share).ceil() as u32 }
}

impl ScrubProgress {
    /// Returns the progress after `read_count` of `due_count` pages were read.
    pub(crate) fn after(
        self,
        read_count: u32,
        due_count: u32,
        pages_count: u32,
        now_ms: u64,
    ) -> Self {
        let next_page = (self.next_page - 1 + read_count) % pages_count.max(1) + 1;
        if read_count >= due_count {
            return Self { next_page, scrubbed_until_ms: now_ms };
        }
        let elapsed_ms = now_ms.saturating_sub(self.scrubbed_until_ms);
        // Years of milliseconds times all pages may exceed 64 bits.
        let part = u128::from(elapsed_ms) * u128::from(read_count) / u128::from(due_count);
        let part_ms = u64::try_from(part).expect("a part is no more than the whole");
        Self { next_page, scrubbed_until_ms: self.scrubbed_until_ms + part_ms }
    }
}

/// The result of reading pages of a file.
pub(crate) struct PagesRead {
    pub(crate) count: u32,
    /// The first page that is damaged.
    pub(crate) damaged: Option<u32>,
}

/// Reads at most `count` pages from `first` on, continuing with page 1 after the last, until one is
/// damaged or `stops` returns `true`.
pub(crate) fn read_pages(
    db: &Connection,
    first: u32,
    count: u32,
    pages_count: u32,
    stops: impl Fn() -> bool,
) -> Result<PagesRead> {
    let mut free = None;
    for number in 0..count.min(PAGES_PER_RUN_MAX) {
        if stops() {
            return Ok(PagesRead { count: number, damaged: None });
        }
        let page = (first - 1 + number) % pages_count + 1;
        if read_page(db, page)?.is_some() {
            continue;
        }
        if free.is_none() {
            free = Some(free_leaves(db)?);
        }
        if !free.as_ref().is_some_and(|free| free.contains(&page)) {
            return Ok(PagesRead { count: number, damaged: Some(page) });
        }
    }
    Ok(PagesRead { count: count.min(PAGES_PER_RUN_MAX), damaged: None })
}

/// Scans the whole file, page by page and its structure, until `stops` returns `true`. Returns the
/// first damage.
pub(crate) fn find(
    db: &Connection,
    is_authenticated: bool,
    stops: impl Fn() -> bool,
) -> Result<Option<String>> {
    if is_authenticated {
        let pages_count = count_pages(db)?;
        let mut first = 1;
        while first <= pages_count {
            let left = pages_count - first + 1;
            let read = read_pages(db, first, left, pages_count, &stops)?;
            if let Some(page) = read.damaged {
                return Ok(Some(page_damage(page, pages_count)));
            }
            first += read.count;
            if stops() {
                return Ok(None);
            }
        }
    }
    find_in_structure(db)
}

/// Returns the first error that SQLite's own check finds.
pub(crate) fn find_in_structure(db: &Connection) -> Result<Option<String>> {
    match quick_check(db) {
        Ok(found) if found == "ok" => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(Error::Sqlite { source, .. }) if is_damage(&source) => Ok(Some(source.to_string())),
        Err(error) => Err(error),
    }
}

pub(crate) fn page_damage(page: u32, pages_count: u32) -> String {
    format!("page {page} of {pages_count} is damaged")
}

pub(crate) fn count_pages(db: &Connection) -> Result<u32> {
    db.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(sqlite("page_count"))
}

/// Reads the bytes of a page. Returns `None` if it is damaged. A page beyond the file's end is
/// empty.
fn read_page(db: &Connection, page: u32) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
    let mut statement = db.prepare_cached(sql).map_err(sqlite("reading a page"))?;
    match statement.query_row([page], |row| row.get(0)).optional() {
        Ok(bytes) => Ok(Some(bytes.unwrap_or_default())),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(sqlite("reading a page")(error)),
    }
}

/// Returns the pages that hold nothing, not even the numbers of other free pages
/// (`https://sqlite.org/fileformat2.html#the_freelist`).
fn free_leaves(db: &Connection) -> Result<HashSet<u32>> {
    const FIRST_TRUNK: usize = 32;

    let number = |bytes: &[u8], place: usize| {
        let bytes = bytes.get(place..place + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    let mut leaves = HashSet::new();
    let mut trunks = HashSet::new();
    let mut trunk = read_page(db, 1)?.map_or(0, |bytes| number(&bytes, FIRST_TRUNK));
    // A damaged list may be circular.
    while trunk != 0 && trunks.insert(trunk) {
        let Some(bytes) = read_page(db, trunk)? else { break };
        let count = number(&bytes, 4) as usize;
        let places = (0..count.min(bytes.len() / 4)).map(|leaf| 8 + leaf * 4);
        leaves.extend(places.map(|place| number(&bytes, place)));
        trunk = number(&bytes, 0);
    }
    Ok(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH: Duration = Duration::from_hours(30 * 24);
    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn a_whole_file_is_read_in_the_period_whatever_the_runs() {
        for (pages_count, run_days) in [(1, 1), (100, 1), (100_000, 1), (100, 3), (5_000, 45)] {
            let mut progress = ScrubProgress { next_page: 1, scrubbed_until_ms: 0 };
            let mut read = 0;
            for day in (1..=90_u64).filter(|day| day % run_days == 0) {
                let due = pages_due(progress, pages_count, day * DAY_MS, MONTH);
                assert!(due <= pages_count);
                // Every second run is interrupted half-way.
                let count = if day % 2 == 0 { due } else { due.div_ceil(2) };
                if due > 0 {
                    progress = progress.after(count, due, pages_count, day * DAY_MS);
                }
                read += u64::from(count);
                assert!((1..=pages_count).contains(&progress.next_page));
            }
            let expected = u64::from(pages_count) * if run_days == 45 { 1 } else { 3 };
            assert!(read * 10 >= expected * 9, "{read} of {expected}, {pages_count} pages");
        }
    }

    #[test]
    fn little_is_not_worth_the_work() {
        let progress = ScrubProgress { next_page: 7, scrubbed_until_ms: 1_000 };
        assert_eq!(pages_due(progress, 1_000, 1_000 + DAY_MS, MONTH), 0);
        assert_eq!(pages_due(progress, 1_000, 1_000 + 3 * DAY_MS, MONTH), 100);
        assert_eq!(pages_due(progress, 1_000, 1_000 + 300 * DAY_MS, MONTH), 1_000);
        assert_eq!(pages_due(progress, 1_000, 1_000, Duration::ZERO), 1_000);
        // The clock was set back.
        assert_eq!(pages_due(progress, 1_000, 0, MONTH), 0);
    }
}
