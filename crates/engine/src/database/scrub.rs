//! Looks for damage: scrubs a share of the pages each time the database is idle, and scans all of
//! them after an error that indicates damage.
//!
//! The progress of scrubbing is stored in the file, in a table of the engine's own
//! (`scrub_progress`), because a database may be open for only minutes a month.
//!
//! # Not here
//! - The pages that are due, and reading one → `damage.rs`. Repair → `repair.rs`.

use std::sync::Weak;

use rusqlite::{Connection, OptionalExtension};

use super::Database;
use super::idle_maintenance::INSTRUCTIONS_PER_LOOK;
use crate::damage::repair::FileRepair;
use crate::damage::{self, DamagePolicy, ScrubProgress};
use crate::error::{Result, sqlite};
use crate::maintenance::MaintenanceRun;
use crate::open;
use crate::open::cipher::Cipher;
use crate::system::clock;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS scrub_progress (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    next_page INTEGER NOT NULL,
    scrubbed_until_ms INTEGER NOT NULL
) STRICT";

impl Database {
    /// Ensures that a database without writes is scrubbed, too. Called once, when it is opened.
    pub(super) fn begin_scrubbing(&self, db: &Connection) -> Result<()> {
        if self.damage.policy.looks() {
            let progress = read_progress(db)?;
            let pages_count = damage::count_pages(db)?;
            if progress.is_none_or(|progress| self.pages_due(progress, pages_count) > 0) {
                self.watch_idleness();
            }
        }
        Ok(())
    }

    /// Reads the pages of the file that are due, until a write arrives.
    pub(super) fn scrub(
        &self,
        db: &Connection,
        batches: u64,
        done: &mut MaintenanceRun,
    ) -> Result<()> {
        if !self.damage.policy.looks() {
            return Ok(());
        }
        if self.damage.description().is_some() {
            self.repair_if_possible();
            return Ok(());
        }
        let (pages_count, now_ms) = (damage::count_pages(db)?, clock::now_ms());
        let Some(progress) = read_progress(db)? else {
            let progress = ScrubProgress { next_page: 1, scrubbed_until_ms: now_ms };
            return self.write_progress(db, progress);
        };
        let due = self.pages_due(progress, pages_count);
        if due == 0 {
            return Ok(());
        }
        let mut read_count = due;
        let found = if self.is_authenticated() {
            let first = progress.next_page.clamp(1, pages_count);
            let is_wanted = || self.is_preempted(batches);
            let read = damage::read_pages(db, first, due, pages_count, is_wanted)?;
            read_count = read.count;
            read.damaged.map(|page| damage::page_damage(page, pages_count))
        } else if due == pages_count {
            damage::find_in_structure(db)?
        } else {
            return Ok(());
        };
        done.pages_scrubbed += u64::from(read_count);
        if let Some(found) = found {
            self.note_damage(&found);
            return Ok(());
        }
        if read_count < due {
            self.watch_idleness();
        }
        self.write_progress(db, progress.after(read_count, due, pages_count, now_ms))
    }

    /// Schedules a full scan or a repair after an error that indicates damage.
    pub(super) fn suspect_damage(&self) {
        if self.damage.description().is_some() {
            self.repair_if_possible();
        } else if self.damage.suspect() {
            self.context.scheduler.scan_for_damage(Weak::clone(&self.this));
        }
    }

    /// Runs a full scan and records damage. Called by the scheduler's thread and by
    /// `repair_damage`.
    pub(crate) fn scan_for_damage(&self) {
        let Some(_run) = self.maintenance.begin() else { return };
        let found = self.find_damage();
        self.damage.record_full_scan();
        let path = self.path.display();
        match found {
            _ if self.maintenance.is_closing() => {}
            Ok(Some(found)) => self.note_damage(&found),
            Err(error) if error.is_damage() => self.note_damage(&error.to_string()),
            Ok(None) => tracing::info!(%path, "a full scan found no damage"),
            Err(error) => tracing::warn!(%path, %error, "cannot scan for damage"),
        }
    }

    /// Scans the whole file, until the database is closed. Returns the first damage.
    fn find_damage(&self) -> Result<Option<String>> {
        let mut db = open::connect(&self.path, &self.encryption, self.cipher, self.profile, true)?;
        let this = Weak::clone(&self.this);
        let stops = move || this.upgrade().is_none_or(|this| this.maintenance.is_closing());
        db.progress_handler(INSTRUCTIONS_PER_LOOK, Some(stops)).map_err(sqlite("watch"))?;
        damage::find(&db, self.is_authenticated(), || self.maintenance.is_closing())
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.cipher.is_some_and(Cipher::authenticates)
    }

    fn note_damage(&self, found: &str) {
        let path = self.path.display();
        self.maintenance.counters.add_damaged();
        self.context.maintenance_totals.add_damaged();
        self.damage.set_found(found);
        match &self.damage.policy {
            DamagePolicy::Repair(_) if self.repair_if_possible() => {}
            DamagePolicy::Repair(_) => tracing::error!(
                %path, found,
                "a database is damaged; it will be repaired once the earlier .damaged file is \
                 moved away"
            ),
            _ => tracing::error!(%path, found, "a database is damaged: restore it from a backup"),
        }
    }

    /// Schedules the repair of the known damage, unless it is scheduled already or an earlier
    /// damaged file still exists. Returns whether the damage will be repaired.
    fn repair_if_possible(&self) -> bool {
        let Some(found) = self.damage.description() else { return false };
        let is_repairing = matches!(self.damage.policy, DamagePolicy::Repair(_));
        if !is_repairing || !FileRepair::is_possible(&self.path) {
            return false;
        }
        let (_, is_first) = self.poison.set(format!("damaged: {found}").into());
        if is_first {
            let path = self.path.display();
            tracing::error!(%path, %found, "a database is damaged and will be repaired");
            // Nothing has just failed that would require a delay.
            self.context.scheduler.recover_at(clock::now(), Weak::clone(&self.this));
        }
        true
    }

    fn pages_due(&self, progress: ScrubProgress, pages_count: u32) -> u32 {
        let period = self.context.scrub_time;
        damage::pages_due(progress, pages_count, clock::now_ms(), period)
    }

    /// Stores the progress, unless a write has arrived: then more is due the next time.
    fn write_progress(&self, db: &Connection, progress: ScrubProgress) -> Result<()> {
        let Some(_turn) = self.pause_writer() else { return Ok(()) };
        let write = || {
            let ScrubProgress { next_page, scrubbed_until_ms } = progress;
            db.execute_batch(TABLE)?;
            let sql = "INSERT OR REPLACE INTO scrub_progress VALUES (1, ?1, ?2)";
            db.execute(sql, (next_page, scrubbed_until_ms.cast_signed())).map(drop)
        };
        write().map_err(sqlite("scrub_progress"))
    }
}

/// Reads the progress of scrubbing. Returns `None` if the file has not been scrubbed yet.
fn read_progress(db: &Connection) -> Result<Option<ScrubProgress>> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'scrub_progress'";
    let read = || {
        if !db.prepare(sql)?.exists([])? {
            return Ok(None);
        }
        let sql = "SELECT next_page, scrubbed_until_ms FROM scrub_progress WHERE id = 1";
        let progress = db.query_row(sql, [], |row| {
            let scrubbed_until_ms = row.get::<_, i64>(1)?.cast_unsigned();
            Ok(ScrubProgress { next_page: row.get(0)?, scrubbed_until_ms })
        });
        progress.optional()
    };
    read().map_err(sqlite("scrub_progress"))
}
