//! The receipt: how the server stands beside this file.

use protocol::ClientList;

use crate::status::Status;

/// The file's side and the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Changes that the server has.
    pub held: u64,
    /// Changes that there are: what is to be sent besides.
    pub known: u64,
    /// Changes that this device has yet to send.
    pub to_send: u64,
    /// Changes that it has yet to get.
    pub to_fetch: u64,
    /// Whether both sides hold the same set, and nothing waits.
    pub equal: bool,
}

impl Receipt {
    /// `list` is the answer to `GET /v1/clients`.
    pub fn of(status: &Status, list: &ClientList) -> Self {
        let server = list.fingerprint.as_ref().and_then(protocol::Fingerprint::to_crdt);
        let held = server.map_or(0, |server| server.count);
        let to_send = status.unsent + status.noted;
        let cursor = status.remote.as_ref().map_or(0, |remote| remote.cursor);
        let to_fetch = list.cursor.saturating_sub(cursor);
        let is_captured = status.uncaptured.is_empty();
        let equal = server == Some(status.fingerprint) && to_send == 0 && is_captured;
        Self { held, known: held + to_send, to_send, to_fetch, equal }
    }
}
