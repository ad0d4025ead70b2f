//! Data that layers share about a request's peer and the end of its connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A marker in a response's extensions: the request's body was not read to its end, so the
/// connection closes after the response, and the server keeps reading for a moment.
#[derive(Clone, Copy, Debug)]
pub struct UnreadBodyMarker;

/// The client of a request. `accept` adds it to each request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct RequestPeer {
    /// The address of the connection's peer, or of a trusted proxy's client.
    pub(crate) address: IpAddr,
    /// Whether the connection's peer is a trusted proxy.
    pub(crate) is_proxy: bool,
    /// Whether the last request was refused and had a body that may not have been read completely.
    pub(crate) is_refused: Arc<AtomicBool>,
}
