//! Repairs a damaged database in the course of a recovery, while no connection has the file open.
//!
//! # Invariants
//! - The damage is verified, with exclusive access, before the file is quarantined: a memory or a
//!   disk that failed for a moment costs no rows.
//!
//! # Not here
//! - Building the new file → `crate::damage::repair`.

use super::Database;
use crate::damage::repair::FileRepair;
use crate::damage::{self, DamagePolicy};
use crate::error::{Error, Result};
use crate::open;
use crate::readers::SNAPSHOT_AGE_MAX;
use crate::system::clock;
use crate::system::directory_lock::DirectoryLock;

impl Database {
    /// Scans the whole file now; if it is damaged, quarantines it and copies the content that can
    /// be read to a new file. Returns a description of the damage.
    ///
    /// Returns [`Error::Busy`] if another program has the file open, [`Error::AlreadyQuarantined`]
    /// if an earlier damaged file still exists, and otherwise the errors of [`Self::maintain`].
    pub fn repair_damage(&self) -> Result<Option<String>> {
        self.scan_for_damage();
        let found = self.damage.description().map(|found| found.to_string());
        if found.is_some() {
            if !FileRepair::is_possible(&self.path) {
                return Err(Error::AlreadyQuarantined { path: self.path.clone() });
            }
            self.try_recover()?;
        }
        Ok(found)
    }

    /// Repairs the file, which no connection may have open.
    pub(super) fn repair(&self) -> Result<()> {
        let Self { path, encryption, profile, migrations, context, .. } = self;
        let DamagePolicy::Repair(finish) = &self.damage.policy else { return Ok(()) };
        let directory = DirectoryLock::exclusive(path, clock::now() + SNAPSHOT_AGE_MAX)?;
        if self.is_still_damaged()? {
            FileRepair { path, encryption, profile, migrations, finish }.run(&directory)?;
            context.maintenance_totals.add_repaired();
            self.maintenance.counters.add_repaired();
        } else {
            tracing::info!(path = %path.display(), "suspected damage was not confirmed");
        }
        self.damage.clear();
        Ok(())
    }

    fn is_still_damaged(&self) -> Result<bool> {
        let db = match open::open_damaged(&self.path, &self.encryption, self.cipher) {
            Err(error) if error.is_damage() => return Ok(true),
            db => db?,
        };
        Ok(damage::find(&db, self.is_authenticated(), || false)?.is_some())
    }
}
