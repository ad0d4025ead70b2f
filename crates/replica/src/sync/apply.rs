//! The sync's last step: what was received is merged into the state and shown.

use super::{Progress, Session};
use crate::error::Result;
use crate::meta::{self, Key};
use crate::table::Table;
use crate::{
    adopt, conflicts, erasure, exception, form, log, merge, obstacle, renumber, schema_change,
    settle, stamp, status,
};

impl Session<'_, '_> {
    /// Shows what was received: one transaction, before which local changes get their time.
    pub(super) fn apply(&mut self) -> Result<()> {
        self.now.device_ms = (self.options.now_ms)();
        let now = self.now;
        let is_clone = meta::get(&self.replica.db, Key::Adopt)?.unwrap_or(false);
        let adopting = self.options.adopt || is_clone;
        let report = &mut self.report;
        report.obstacles.clear();
        let progress = &mut self.options.progress;
        let (off_ms, schema_version) = (self.off_ms, self.schema_version);
        self.replica.transaction(|db| {
            meta::set(db, Key::ClockOff, off_ms)?;
            form::check(db)?;
            if schema_change::schema_version(db)? != schema_version {
                // A program has rebuilt a table, perhaps, while the network was waited for.
                schema_change::follow_schema(db, now.device_ms)?;
            }
            report.add_renumbered(stamp::stamp(db, &Table::all(db)?, now)?);
            report.add_renumbered(renumber::renumber(db, &Table::all(db)?)?);
            let merged = merge::merge(db, |done| progress(Progress::Applied(done)))?;
            report.refused.add_all(merged.refused);
            if adopting {
                let adopted = adopt::adopt(db)?;
                report.adopted.extend(adopted.done);
                report.left_out.extend(adopted.left_out.iter().map(ToString::to_string));
                report.obstacles = adopted.obstacles;
                schema_change::follow_schema(db, now.device_ms)?;
            }
            let tables = Table::all(db)?;
            report.obstacles.extend(obstacle::other_keys(db, &tables)?);
            report.obstacles.extend(obstacle::null_keys(db, &tables)?);
            let mut settle =
                || settle::settle(db, tables.clone(), |done| progress(Progress::Applied(done)));
            let mut settled = settle()?;
            while !settled.equal.is_empty() {
                report.add_joined(renumber::join(db, &tables, &settled.equal)?);
                settled = settle()?;
            }
            report.obstacles.extend(settled.unwritable);
            obstacle::replace(db, &report.obstacles)?;
            if meta::number(db, Key::SyncedMs)? > 0 {
                // What a new device has not seen was settled before it came.
                report.lost += conflicts::count(db, &merged.contested)?;
            }
            report.exceptions = exception::counts(db)?;
            report.set_aside = log::set_aside_count(db)?;
            report.refused_in_all = log::refused_count(db)?;
            report.unknown = status::unknown(db)?;
            report.unerased = erasure::unerased(db, report.equal)?;
            meta::set_number(db, Key::SyncedMs, now.device_ms)?;
            meta::set_number(db, Key::ServerCount, report.server_count)?;
            meta::set_server_loss(db, report.server_loss.as_ref())?;
            meta::set(db, Key::Equal, report.equal)
        })
    }
}
