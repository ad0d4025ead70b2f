//! The data of a user's devices in the vault: their names, and how far each has synced.
//!
//! # Not here
//! - The list of devices and their tokens → `accounts`. A row here gives no access.

use accounts::DeviceId;
use crdt::NodeId;

/// A device of the vault's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultDevice {
    pub id: DeviceId,
    /// The name that people gave it.
    pub name: String,
    /// The node id in the timestamps of its changes, if it has reported it.
    pub node_id: Option<NodeId>,
    /// The sequence number up to which it has all messages of the vault.
    pub cursor: u64,
    /// The number of changes that it still had to send at its last report.
    pub unsent_count: u64,
    /// The time of its last sync in milliseconds since 1970; 0 if it never synced.
    pub last_seen_ms: u64,
    /// The time of its registration in milliseconds since 1970.
    pub created_ms: u64,
}

/// The activity of a device: a request and its time.
#[derive(Clone, Debug)]
pub struct DeviceActivity {
    pub device: DeviceId,
    pub now_ms: u64,
    /// The node id that the device reports; `None` keeps the recorded one.
    pub node_id: Option<NodeId>,
    /// The number of unsent changes that the device reports: before a page is read, but after a
    /// batch is stored.
    pub unsent_count: Option<u64>,
}
