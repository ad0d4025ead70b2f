//! Lost messages of a vault: those that were unreadable when its damaged file was repaired.
//!
//! Only their number is known, not which ones they were. Devices that have them see that the
//! fingerprints differ and send them again. So the number of missing messages is reduced by
//! arriving ones that are older than the repair; a message that no device had sent before it
//! counts, too.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::sqlite::schema::to_column;
use crate::vault::batch::MessageBatch;
use crate::vault::device::DeviceActivity;
use crate::vault::{LostMessages, VaultSummary};

/// The time after the repair for which a loss is reported, even if no known device is away.
const REPORTED_MS: u64 = 14 * 24 * 60 * 60 * 1_000;

/// The maximum number of devices that are named.
const DEVICES_NAMED_MAX: usize = 20;

/// Records that a vault with the summary `before` was repaired and has the summary `after` now. In
/// a vault of which no data was readable, `before` is empty. Returns the number of missing
/// messages, if it is known.
pub(super) fn record_loss(
    db: &Connection,
    before: VaultSummary,
    after: VaultSummary,
) -> Result<Option<u64>> {
    let (before_count, after_count) = (before.fingerprint.count, after.fingerprint.count);
    let is_known = before != VaultSummary::default();
    let lost = before_count.checked_sub(after_count).filter(|_| is_known);
    if lost != Some(0) {
        let sql = "UPDATE vault_summary SET
                       missing_count = iif(
                           repaired_ms IS NOT NULL AND missing_count IS NULL,
                           NULL,
                           coalesce(missing_count, 0) + ?1
                       ),
                       repaired_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        db.execute(sql, [lost.map(to_column)])?;
    }
    Ok(lost)
}

/// Records the arrival of messages; the ones at the places in `known` were known already.
pub(super) fn record_returned(
    db: &Connection,
    batch: &MessageBatch,
    known: &[usize],
) -> Result<()> {
    let sql = "SELECT repaired_ms FROM vault_summary WHERE missing_count > 0";
    let repaired_ms =
        db.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).optional()?;
    let Some(repaired_ms) = repaired_ms.map(i64::cast_unsigned) else { return Ok(()) };
    let is_new = |&(place, _): &(usize, _)| known.binary_search(&place).is_err();
    let new = batch.timestamps().enumerate().filter(is_new);
    let returned_count = new.filter(|(_, timestamp)| timestamp.millis() <= repaired_ms).count();
    let sql = "UPDATE vault_summary SET missing_count = max(missing_count - ?1, 0)";
    db.prepare_cached(sql)?.execute([to_column(returned_count as u64)])?;
    Ok(())
}

/// Removes the record of a loss, because the vault starts again without messages.
pub(super) fn forget(db: &Connection) -> Result<()> {
    db.execute("UPDATE vault_summary SET repaired_ms = NULL, missing_count = NULL", [])?;
    Ok(())
}

/// Returns the loss to report to the requesting device. The report ends when no messages are
/// missing, or some time after the repair if all known devices have synced.
pub(super) fn current_loss(db: &Connection, asks: &DeviceActivity) -> Result<Option<LostMessages>> {
    let sql = "SELECT repaired_ms, missing_count FROM vault_summary
               WHERE repaired_ms IS NOT NULL AND missing_count IS NOT 0";
    let mut statement = db.prepare_cached(sql)?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, Option<i64>>(1)?))
    };
    let Some((at_ms, count)) = statement.query_row([], row).optional()? else { return Ok(None) };
    let devices_away = away(db, asks, at_ms)?;
    let is_old = asks.now_ms.saturating_sub(at_ms) > REPORTED_MS;
    let is_over = devices_away.is_empty() && is_old;
    let count = count.map(i64::cast_unsigned);
    Ok((!is_over).then_some(LostMessages { at_ms, count, devices_away }))
}

/// Returns the names of the other devices that have not synced since the repair, most recently seen
/// first. A device that never had messages cannot return any.
fn away(db: &Connection, asks: &DeviceActivity, at_ms: u64) -> Result<Vec<String>> {
    let sql = "SELECT iif(name = '', id, name) FROM device
               WHERE last_seen_ms <= ?1 AND created_ms <= ?1 AND cursor > 0 AND id <> ?2
               ORDER BY last_seen_ms DESC, id LIMIT ?3";
    let mut statement = db.prepare_cached(sql)?;
    let limit = to_column(DEVICES_NAMED_MAX as u64);
    let names =
        statement.query_map((to_column(at_ms), asks.device.as_str(), limit), |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use accounts::DeviceId;
    use bytes::Bytes;
    use crdt::{Fingerprint, Message, NodeId, Timestamp};

    use super::*;
    use crate::sqlite::devices;
    use crate::sqlite::schema::MIGRATIONS;
    use crate::vault::device::VaultDevice;

    const LATE_MS: u64 = 4_000_000_000_000;

    fn summary(count: u64) -> VaultSummary {
        VaultSummary { fingerprint: Fingerprint { count, digest: 7 }, ..VaultSummary::default() }
    }

    fn id(number: u64) -> DeviceId {
        format!("{number:016x}").parse().unwrap()
    }

    /// Creates a vault with devices 1 and 2 that was repaired.
    fn repaired(before: VaultSummary, after: VaultSummary) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            db.execute_batch(migration.sql).unwrap();
        }
        for number in [1, 2] {
            let device = VaultDevice {
                id: id(number),
                name: format!("device {number}"),
                node_id: None,
                cursor: 1,
                unsent_count: 0,
                last_seen_ms: number,
                created_ms: number,
            };
            devices::add(&db, &device).unwrap();
        }
        record_loss(&db, before, after).unwrap();
        db
    }

    /// Returns the loss that is reported to device 1.
    fn heard(db: &Connection, now_ms: u64) -> Option<LostMessages> {
        current_loss(
            db,
            &DeviceActivity { device: id(1), now_ms, node_id: None, unsent_count: None },
        )
        .unwrap()
    }

    fn sync(db: &Connection, number: u64) {
        let seen = DeviceActivity {
            device: id(number),
            now_ms: LATE_MS,
            node_id: None,
            unsent_count: None,
        };
        devices::record_pull(db, &seen, 1).unwrap();
    }

    fn batch(times_ms: &[u64]) -> MessageBatch {
        let message = |millis: &u64| Message {
            timestamp: Timestamp::new(*millis, 0, NodeId(1)).unwrap(),
            content: Bytes::from_static(b"x"),
        };
        MessageBatch::new(times_ms.iter().map(message).collect()).unwrap()
    }

    #[test]
    fn what_returns_is_counted_down_and_what_is_new_is_not() {
        let db = repaired(summary(10), summary(7));
        let loss = heard(&db, LATE_MS).unwrap();
        assert_eq!((loss.count, loss.devices_away), (Some(3), vec!["device 2".to_owned()]));
        // The second message was known, and the third is later than the repair.
        record_returned(&db, &batch(&[1, 2, LATE_MS]), &[1]).unwrap();
        assert_eq!(heard(&db, LATE_MS).unwrap().count, Some(2));
        record_returned(&db, &batch(&[3, 4, 5]), &[]).unwrap();
        assert_eq!(heard(&db, LATE_MS), None);
    }

    #[test]
    fn a_loss_is_said_for_some_time_after_all_devices_have_synced() {
        let db = repaired(summary(10), summary(7));
        let at_ms = heard(&db, LATE_MS).unwrap().at_ms;
        sync(&db, 2);
        assert_eq!(heard(&db, at_ms + REPORTED_MS).unwrap().devices_away, [""; 0]);
        assert_eq!(heard(&db, at_ms + REPORTED_MS + 1), None);
    }

    #[test]
    fn a_vault_that_does_not_know_what_it_had_says_so() {
        let db = repaired(VaultSummary::default(), VaultSummary::default());
        assert_eq!(heard(&db, LATE_MS).unwrap().count, None);
        // The new loss is known, but the earlier one is not.
        record_loss(&db, summary(4), summary(3)).unwrap();
        assert_eq!(heard(&db, LATE_MS).unwrap().count, None);
    }

    #[test]
    fn a_device_that_syncs_right_after_a_repair_is_noted() {
        let db = repaired(summary(10), summary(7));
        let at_ms = heard(&db, LATE_MS).unwrap().at_ms;
        let before =
            DeviceActivity { device: id(2), now_ms: at_ms, node_id: None, unsent_count: None };
        devices::record_pull(&db, &before, 1).unwrap();
        let after = DeviceActivity { now_ms: at_ms + 1, ..before };
        assert!(devices::is_stale(&db, &after, 1).unwrap());
        devices::record_pull(&db, &after, 1).unwrap();
        assert!(!devices::is_stale(&db, &after, 1).unwrap());
    }

    #[test]
    fn a_repair_that_loses_nothing_is_no_loss() {
        assert_eq!(heard(&repaired(summary(10), summary(10)), LATE_MS), None);
    }
}
