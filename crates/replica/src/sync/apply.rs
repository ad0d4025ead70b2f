//! Merges the received messages and materializes them, as the last step of a sync.

use super::SyncDriver;
use crate::apply::{materialize, merge, visibility_override};
use crate::capture::{renumber, timestamping};
use crate::error::Result;
use crate::inspect::{conflicts, erasure, replica_status};
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::progress::SyncProgress;
use crate::schema::tracked_table::{TrackedTable, check_not_shadowed};
use crate::schema::{remote_tables, schema_conflict};
use crate::sync::account_encryption;
use crate::tracking::schema_change;

impl SyncDriver<'_, '_> {
    /// Applies the received messages in one transaction, after timestamping local changes.
    pub(super) fn apply(&mut self) -> Result<()> {
        self.now.device_ms = (self.options.now_ms)();
        let now = self.now;
        let is_clone = meta::get(&self.replica.db, ReplicaMetaKey::CreateMissing)?.unwrap_or(false);
        let adopting = self.options.create_missing || is_clone;
        let report = &mut self.report;
        report.schema_conflicts.clear();
        let progress = &mut self.options.progress;
        let (off_ms, schema_version) = (self.clock_offset_ms, self.schema_version);
        self.replica.transaction(|db| {
            meta::set(db, ReplicaMetaKey::ClockOffset, off_ms)?;
            account_encryption::require_matching_mode(db)?;
            if schema_change::schema_version(db)? != schema_version {
                // A program may have rebuilt a table during a network request.
                schema_change::follow_schema_changes(db, now.device_ms)?;
            }
            report.add_renumbered(timestamping::timestamp_pending(
                db,
                &TrackedTable::all(db)?,
                now,
            )?);
            report
                .add_renumbered(renumber::renumber_conflicting_rows(db, &TrackedTable::all(db)?)?);
            let merged = merge::merge(db, |done| progress(SyncProgress::Applied(done)))?;
            report.rejected.add_all(merged.rejected);
            if adopting {
                let created = remote_tables::create_remote_tables(db)?;
                report.created_tables.extend(created.created);
                report.left_out.extend(created.left_out.iter().map(ToString::to_string));
                report.schema_conflicts = created.schema_conflicts;
                schema_change::follow_schema_changes(db, now.device_ms)?;
            }
            let tables = TrackedTable::all(db)?;
            // One of the tables may have been created just now.
            check_not_shadowed(db, &tables)?;
            report.schema_conflicts.extend(schema_conflict::key_mismatches(db, &tables)?);
            report.schema_conflicts.extend(schema_conflict::tables_with_null_keys(db, &tables)?);
            let mut materialize_once = || {
                materialize::materialize(db, tables.clone(), |done| {
                    progress(SyncProgress::Applied(done));
                })
            };
            let mut outcome = materialize_once()?;
            while !outcome.equal.is_empty() {
                report.add_merged(renumber::merge(db, &tables, &outcome.equal)?);
                outcome = materialize_once()?;
            }
            report.schema_conflicts.extend(outcome.unwritable);
            schema_conflict::replace(db, &report.schema_conflicts)?;
            if meta::number(db, ReplicaMetaKey::LastSyncedMs)? > 0 {
                // A new device does not report conflicts from before its first sync.
                report.conflicts_count += conflicts::count(db, &merged.contested)?;
            }
            report.set_visibility_overrides(visibility_override::counts(db)?);
            report.set_aside_count = message_log::set_aside_count(db)?;
            report.rejected_count = message_log::rejected_count(db)?;
            report.missing_tables = replica_status::unknown(db)?;
            report.unerased_count = erasure::unerased(db, report.in_sync)?;
            meta::set_number(db, ReplicaMetaKey::LastSyncedMs, now.device_ms)?;
            meta::set_number(
                db,
                ReplicaMetaKey::ServerMessagesCount,
                report.server_messages_count,
            )?;
            meta::set_server_loss(db, report.server_loss.as_ref())?;
            meta::set(db, ReplicaMetaKey::InSync, report.in_sync)
        })
    }
}
