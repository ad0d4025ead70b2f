//! Stores the names of the account's devices, and reports whether this file has changed.

use std::collections::HashMap;

use crdt::{Fingerprint, NodeId};
use protocol::{DeviceInfo, DeviceList};
use rusqlite::Connection;

use crate::capture::triggers;
use crate::error::Result;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;
use crate::tracking::schema_change;

impl Replica {
    /// Stores the names of the devices that make changes in `warren_device`. Removed devices keep
    /// their names, as their changes stay.
    pub fn store_device_names(&self, list: &DeviceList) -> Result<()> {
        let devices: Vec<_> = list.devices.iter().filter_map(name).collect();
        if knows(&self.db, &devices)? {
            // A mere query of the status does not have to wait for a lock.
            return Ok(());
        }
        self.transaction(|db| {
            let mut insert = db.prepare_cached(
                "INSERT INTO warren_device VALUES (?1, ?2) ON CONFLICT (node_id)
                 DO UPDATE SET name = excluded.name WHERE name <> excluded.name",
            )?;
            for (node, name) in &devices {
                insert.execute((node.0.cast_signed(), name))?;
            }
            Ok(())
        })
    }

    /// Returns a number that changes when another program writes to the file. This only reads the
    /// file's header.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self.db.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// Returns the fingerprint of all messages that this device has.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        meta::fingerprint(&self.db)
    }

    /// Returns the number of changes that the server lacks: unsent messages and pending changes.
    pub fn pending_upload_count(&self) -> Result<u64> {
        pending_upload_count(&self.db)
    }

    /// Returns whether a sync may find something to send: pending changes, or tables whose changes
    /// are not all recorded.
    pub fn may_have_changed(&self) -> Result<bool> {
        Ok(self.pending_upload_count()? > 0
            || !schema_change::uncaptured_tables(&self.db)?.is_empty())
    }
}

/// Returns the node id and name of a device, if it has synced and thereby reported its node id.
fn name(device: &DeviceInfo) -> Option<(NodeId, String)> {
    let node = u64::from_str_radix(&device.node_id, 16).ok()?;
    Some((NodeId(node), device.name.clone()))
}

fn knows(db: &Connection, devices: &[(NodeId, String)]) -> Result<bool> {
    let mut find =
        db.prepare_cached("SELECT 1 FROM warren_device WHERE node_id = ?1 AND name = ?2")?;
    for (node, name) in devices {
        if !find.exists((node.0.cast_signed(), name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number of changes that the server lacks (see [`Replica::pending_upload_count`]).
pub(crate) fn pending_upload_count(db: &Connection) -> Result<u64> {
    let noted = triggers::pending_count(db)?;
    Ok(noted + message_log::unsent_count(db)?)
}

/// The names of the devices for which this file stores one.
pub(crate) struct DeviceNames(HashMap<NodeId, String>);

impl DeviceNames {
    pub(crate) fn load(db: &Connection) -> Result<Self> {
        let mut statement = db.prepare("SELECT node_id, name FROM warren_device")?;
        let rows = statement.query_map([], |row| {
            Ok((NodeId(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?))
        })?;
        let mut names: HashMap<_, _> = rows.collect::<rusqlite::Result<_>>()?;
        if let Some(own) = meta::get(db, ReplicaMetaKey::DeviceName)? {
            names.insert(meta::node_id(db)?, own);
        }
        Ok(Self(names))
    }

    /// Returns the device's name, or else the 16 digits of its node id.
    pub(crate) fn name(&self, node: NodeId) -> String {
        self.0.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }
}
