//! Both sides of a request, as other layers are told: who asks, and what becomes of the connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// In an answer's extensions: the request's body was not read to its end, so the connection closes
/// after it, and the peer is listened to for a moment longer.
#[derive(Clone, Copy, Debug)]
pub struct UnreadBodyMarker;

/// Who asks; `accept` puts it beside each request.
#[derive(Clone, Debug)]
pub(crate) struct RequestPeer {
    /// The other side of the connection, or the client of a trusted proxy.
    pub(crate) address: IpAddr,
    /// Whether the other side is such a proxy.
    pub(crate) is_proxy: bool,
    /// Whether its last request was refused and had a body, of which perhaps not all was read.
    pub(crate) is_refused: Arc<AtomicBool>,
}
