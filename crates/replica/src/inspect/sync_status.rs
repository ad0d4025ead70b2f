//! The server's state, compared with this file's.

use protocol::{DeviceInfo, DeviceList};
use serde::Serialize;
use utoipa::ToSchema;

use super::replica_status::ReplicaStatus;

/// The file's side and the server's.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SyncStatus {
    /// Changes that the server has.
    pub server_messages_count: u64,
    /// Changes that there are: what is to be sent besides.
    pub total_messages_count: u64,
    /// Changes that this device has yet to send.
    pub pending_upload_count: u64,
    /// Changes that it has yet to get.
    pub pending_download_count: u64,
    /// Whether both sides hold the same set, and nothing waits.
    pub in_sync: bool,
    /// The server's clock, in milliseconds since 1970.
    pub server_time_ms: u64,
    /// The account's devices, this one included.
    pub devices: Vec<DeviceInfo>,
}

impl SyncStatus {
    /// `list` is the answer to `GET /v1/devices`.
    pub fn new(status: &ReplicaStatus, list: &DeviceList) -> Self {
        let server = list.fingerprint.as_ref().and_then(protocol::WireFingerprint::to_crdt);
        let held = server.map_or(0, |server| server.count);
        let pending_upload_count = status.unsent_count + status.pending_count;
        let cursor = status.remote.as_ref().map_or(0, |remote| remote.cursor);
        let pending_download_count = list.cursor.saturating_sub(cursor);
        let is_captured = status.uncaptured_tables.is_empty();
        let in_sync =
            server == Some(status.fingerprint()) && pending_upload_count == 0 && is_captured;
        Self {
            server_messages_count: held,
            total_messages_count: held + pending_upload_count,
            pending_upload_count,
            pending_download_count,
            in_sync,
            server_time_ms: list.server_time_ms,
            devices: list.devices.clone(),
        }
    }
}
