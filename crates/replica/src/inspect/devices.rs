//! What this file remembers of the account's devices, and whether it has changed.

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
    /// Remembers what people call the devices that make changes: `warren_device`. Devices that are
    /// gone keep their names, as their changes stay.
    pub fn store_device_names(&self, list: &DeviceList) -> Result<()> {
        let devices: Vec<_> = list.devices.iter().filter_map(name).collect();
        if knows(&self.db, &devices)? {
            // Whoever only asks how things stand need not wait for a lock.
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

    /// A number that is another one after any other program has written to the file. Costs a look
    /// at the file's header.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self.db.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// All messages that this device has.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        meta::fingerprint(&self.db)
    }

    /// Changes that the server has yet to get: messages, and what the triggers have noted.
    pub fn pending_upload_count(&self) -> Result<u64> {
        pending_upload_count(&self.db)
    }

    /// Whether a sync may find something to send: changes that are noted, or tables to which not
    /// every change is.
    pub fn may_have_changed(&self) -> Result<bool> {
        Ok(self.pending_upload_count()? > 0
            || !schema_change::uncaptured_tables(&self.db)?.is_empty())
    }
}

/// A device that has synced says under which name it makes changes.
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

/// [`Replica::pending_upload_count`]
pub(crate) fn pending_upload_count(db: &Connection) -> Result<u64> {
    let noted = triggers::pending_count(db)?;
    Ok(noted + message_log::unsent_count(db)?)
}

/// The names of the devices that have one here.
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

    /// The device's name, or else its node's 16 digits.
    pub(crate) fn name(&self, node: NodeId) -> String {
        self.0.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }
}
