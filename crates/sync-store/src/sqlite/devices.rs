//! Reads and writes a vault's table of devices.

use accounts::DeviceId;
use crdt::NodeId;
use rusqlite::{Connection, params};

use crate::error::Result;
use crate::sqlite::schema::to_column;
use crate::vault::device::{DeviceActivity, VaultDevice};

/// The time by which `last_seen_ms` may lag behind if nothing else about a device changes: a device
/// that syncs every second should not cost a write every second.
const SEEN_LAG_MS_MAX: u64 = 60_000;

pub(crate) fn add(db: &Connection, device: &VaultDevice) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO device (id, name, node_id, cursor, unsent_count, last_seen_ms, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        device.id.as_str(),
        device.name,
        device.node_id.map(node_id_column),
        to_column(device.cursor),
        to_column(device.unsent_count),
        to_column(device.last_seen_ms),
        to_column(device.created_ms)
    ])?;
    Ok(())
}

fn node_id_column(node_id: NodeId) -> i64 {
    node_id.0.cast_signed()
}

pub(crate) fn list(db: &Connection) -> Result<Vec<VaultDevice>> {
    let mut statement = db.prepare_cached(
        "SELECT id, name, node_id, cursor, unsent_count, last_seen_ms, created_ms FROM device
         ORDER BY created_ms, id",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(VaultDevice {
            id: row.get::<_, String>(0)?.parse().expect("only `add` writes ids"),
            name: row.get(1)?,
            node_id: row.get::<_, Option<i64>>(2)?.map(|id| NodeId(id.cast_unsigned())),
            cursor: row.get::<_, i64>(3)?.cast_unsigned(),
            unsent_count: row.get::<_, i64>(4)?.cast_unsigned(),
            last_seen_ms: row.get::<_, i64>(5)?.cast_unsigned(),
            created_ms: row.get::<_, i64>(6)?.cast_unsigned(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn remove(db: &Connection, ids: &[DeviceId]) -> Result<()> {
    let mut statement = db.prepare_cached("DELETE FROM device WHERE id = ?1")?;
    for id in ids {
        statement.execute([id.as_str()])?;
    }
    Ok(())
}

/// Records that the device has pushed messages, of which some were new. If it had all messages
/// before, it has all of them afterwards. Unless it reports its number of unsent changes, the
/// pushed messages are subtracted from the recorded number.
pub(crate) fn record_push(
    db: &Connection,
    seen: &DeviceActivity,
    sent: u64,
    before: u64,
    after: u64,
) -> Result<()> {
    db.prepare_cached(
        "UPDATE device SET last_seen_ms = ?2, cursor = iif(cursor = ?3, ?4, cursor),
             unsent_count = coalesce(?7, max(unsent_count - ?6, 0))
         WHERE id = ?1 AND (
             last_seen_ms + ?5 <= ?2 OR ?3 <> ?4 OR max(unsent_count, coalesce(?7, 0)) > 0
         )",
    )?
    .execute(params![
        seen.device.as_str(),
        to_column(seen.now_ms),
        to_column(before),
        to_column(after),
        to_column(SEEN_LAG_MS_MAX),
        to_column(sent),
        seen.unsent_count.map(to_column)
    ])?;
    Ok(())
}

/// Records that the device has all messages up to `cursor`.
pub(crate) fn record_pull(db: &Connection, seen: &DeviceActivity, cursor: u64) -> Result<()> {
    db.prepare_cached(
        "UPDATE device SET last_seen_ms = ?2, cursor = ?3, node_id = coalesce(?4, node_id),
             unsent_count = coalesce(?5, unsent_count)
         WHERE id = ?1",
    )?
    .execute(params![
        seen.device.as_str(),
        to_column(seen.now_ms),
        to_column(cursor),
        seen.node_id.map(node_id_column),
        seen.unsent_count.map(to_column)
    ])?;
    Ok(())
}

/// Whether [`record_pull`] would change data that matters. This includes the first sync after a
/// repair: the devices that have not synced since are those that may have the vault's lost
/// messages.
pub(crate) fn is_stale(db: &Connection, seen: &DeviceActivity, cursor: u64) -> Result<bool> {
    let mut statement = db.prepare_cached(
        "SELECT 1 FROM device WHERE id = ?1
         AND (cursor <> ?3 OR last_seen_ms + ?4 <= ?2 OR node_id IS NOT coalesce(?5, node_id)
              OR unsent_count <> coalesce(?6, unsent_count)
              OR last_seen_ms <= (SELECT repaired_ms FROM vault_summary))",
    )?;
    Ok(statement.exists(params![
        seen.device.as_str(),
        to_column(seen.now_ms),
        to_column(cursor),
        to_column(SEEN_LAG_MS_MAX),
        seen.node_id.map(node_id_column),
        seen.unsent_count.map(to_column)
    ])?)
}
