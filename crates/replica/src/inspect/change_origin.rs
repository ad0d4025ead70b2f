//! Describes the time and device of a change.

use crdt::{NodeId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::devices::DeviceNames;
use super::json;

/// The time of a change, and the device that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangeOrigin {
    /// The timestamp of the change's message.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String, example = "2026-11-21T06:30:00.123Z-0000-a1b2c3d4e5f60718")]
    pub timestamp: Timestamp,
    /// The time of the change, in milliseconds since 1970. Rows that existed before their table was
    /// tracked have the first day of 1970.
    pub changed_ms: u64,
    /// The name of the device that made the change, or the digits of its node id.
    pub device_name: String,
    /// The device's id in timestamps: 16 hex digits.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String, example = "a1b2c3d4e5f60718")]
    pub node_id: NodeId,
}

impl ChangeOrigin {
    pub(crate) fn new(timestamp: Timestamp, devices: &DeviceNames) -> Self {
        let node_id = timestamp.node_id();
        Self {
            timestamp,
            changed_ms: timestamp.millis(),
            device_name: devices.name(node_id),
            node_id,
        }
    }
}
