//! Which tables are tracked: what callers ask.
//!
//! # Not here
//! - What tracking a table does → `tracking.rs`. Which can be → `trackable_tables.rs`.

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
    /// Begins to track these tables, all or none.
    pub fn track(&self, tables: &[String]) -> Result<Vec<TrackingResult>> {
        self.transaction(|db| {
            // What is in these tables refers to new rows by the keys that they will have.
            timestamping::move_from_known_keys(db, &TrackedTable::all(db)?)?;
            let mut tracked = Vec::new();
            for name in tables {
                tracked.push(tracking::track(db, &trackable_tables::check_trackable(db, name)?)?);
            }
            Ok(tracked)
        })
    }

    /// Begins to track every table that can be; the others come back with the reason.
    pub fn track_all(&self) -> Result<(Vec<TrackingResult>, Vec<Error>)> {
        let (can, cannot) = trackable_tables::all(&self.db)?;
        Ok((self.track(&can)?, cannot))
    }

    /// Stops tracking these tables. Changes that were made until now are still sent, but for those
    /// of a table that lost what they are about.
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

    /// Takes everything of Warren's out of the file. Refused while there are changes that no server
    /// has, unless `force`. Returns the names of the tables that were tracked.
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
