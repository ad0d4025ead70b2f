//! Compares the server's state with this file's.

use protocol::{DeviceInfo, DeviceList};
use serde::Serialize;
use utoipa::ToSchema;

use super::replica_status::ReplicaStatus;

/// The sync status of the file and the server.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SyncStatus {
    /// The number of changes on the server.
    pub server_messages_count: u64,
    /// The number of all changes: those on the server and those still to be sent.
    pub total_messages_count: u64,
    /// The number of changes that this device still has to send.
    pub pending_upload_count: u64,
    /// The number of changes that this device still has to download.
    pub pending_download_count: u64,
    /// Whether the file and the server have the same changes and nothing is pending.
    pub in_sync: bool,
    /// The time of the server's clock, in milliseconds since 1970.
    pub server_time_ms: u64,
    /// The devices of the account, including this one.
    pub devices: Vec<DeviceInfo>,
}

impl SyncStatus {
    /// Creates the status from `list`, the answer to `GET /v1/devices`.
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
