//! What a vault knows about the user's devices: their names, and how far each has synced.
//!
//! # Not here
//! - Which devices there are, and their tokens → `accounts`. A row here gives nobody access.

use accounts::DeviceId;
use crdt::NodeId;

/// A device of the vault's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultDevice {
    pub id: DeviceId,
    /// What people call it.
    pub name: String,
    /// Under which name it stamps its changes, if it has said so.
    pub node_id: Option<NodeId>,
    /// Up to which sequence number it has what the vault has.
    pub cursor: u64,
    /// Changes that it had yet to send when it was last heard of.
    pub unsent_count: u64,
    /// When it last synced, milliseconds since 1970; 0 if never.
    pub last_seen_ms: u64,
    /// When it was registered, milliseconds since 1970.
    pub created_ms: u64,
}

/// Who asks, and when.
#[derive(Clone, Debug)]
pub struct DeviceActivity {
    pub device: DeviceId,
    pub now_ms: u64,
    /// What the device says of itself; `None` leaves what is known.
    pub node_id: Option<NodeId>,
    /// Before a page is answered, but after a batch is stored.
    pub unsent_count: Option<u64>,
}
