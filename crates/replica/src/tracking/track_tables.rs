//! Tracks and untracks tables for the callers of this crate.
//!
//! # Not here
//! - Tracking one table → `tracking.rs`. Finding trackable tables → `trackable_tables.rs`.

use super::{schema_change, trackable_tables};
use crate::capture::timestamping::{self, CorrectedClock};
use crate::capture::triggers;
use crate::error::{Error, Result};
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;
use crate::schema::tracked_table::TrackedTable;
use crate::tracking::{self, TrackingResult};

impl Replica {
    /// Starts tracking these tables, all or none.
    pub fn track(&self, tables: &[String]) -> Result<Vec<TrackingResult>> {
        self.transaction(|db| {
            // Rows of these tables must refer to new rows by the keys that those will have.
            timestamping::move_from_known_keys(db, &TrackedTable::all(db)?)?;
            let mut tracked = Vec::new();
            for name in tables {
                tracked.push(tracking::track(db, &trackable_tables::check_trackable(db, name)?)?);
            }
            Ok(tracked)
        })
    }

    /// Starts tracking every trackable table. Returns the errors of the others.
    pub fn track_all(&self) -> Result<(Vec<TrackingResult>, Vec<Error>)> {
        let (can, cannot) = trackable_tables::all(&self.db)?;
        Ok((self.track(&can)?, cannot))
    }

    /// Stops tracking these tables. Changes up to now are still sent, except those of a table that
    /// was removed, lost a column, or has another key.
    pub fn untrack(&self, tables: &[String], now_ms: u64) -> Result<()> {
        self.transaction(|db| {
            let mut readable = Vec::new();
            for table in TrackedTable::all(db)? {
                if schema_change::incompatible_change(db, &table)?.is_none() {
                    schema_change::follow_table_changes(db, &table, now_ms)?;
                    readable.push(tracking::find(db, table.id)?);
                }
            }
            timestamping::timestamp_pending(
                db,
                &readable,
                CorrectedClock { device_ms: now_ms, offset_ms: 0 },
            )?;
            tables.iter().try_for_each(|name| tracking::untrack(db, name))
        })
    }

    /// Removes everything of Warren from the file. Returns the names of the tracked tables.
    ///
    /// # Errors
    /// [`Error::UnsentChanges`] if there are changes that no server has, unless `force` is set.
    pub fn untrack_all(self, force: bool) -> Result<Vec<String>> {
        self.transaction(|db| {
            let noted = triggers::pending_count(db)?;
            let signed_in = meta::get::<String>(db, ReplicaMetaKey::Token)?.is_some();
            let count = noted + message_log::unsent_count(db)?;
            if count > 0 && signed_in && !force {
                return Err(Error::UnsentChanges { count });
            }
            let tables = TrackedTable::all(db)?.into_iter().map(|table| table.name).collect();
            tracking::remove_all(db)?;
            Ok(tables)
        })
    }
}
