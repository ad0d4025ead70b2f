//! What people call a device.

use std::collections::HashMap;

use crdt::Node;
use rusqlite::Connection;

use crate::error::Result;
use crate::meta::{self, Key};

/// The names of the devices that have one here.
pub(crate) struct Devices(HashMap<Node, String>);

impl Devices {
    pub(crate) fn load(db: &Connection) -> Result<Self> {
        let mut statement = db.prepare("SELECT node, name FROM warren_device")?;
        let rows = statement
            .query_map([], |row| Ok((Node(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?)))?;
        let mut names: HashMap<_, _> = rows.collect::<rusqlite::Result<_>>()?;
        if let Some(own) = meta::get(db, Key::DeviceName)? {
            names.insert(meta::node(db)?, own);
        }
        Ok(Self(names))
    }

    /// The device's name, or else its node's 16 digits.
    pub(crate) fn name(&self, node: Node) -> String {
        self.0.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }
}
