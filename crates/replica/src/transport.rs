//! Connects a replica to a server: with blocking calls in programs, with futures in a browser.
//!
//! The sync is written once, over futures. A blocking transport returns futures that are ready at
//! once, so a program needs no runtime (`docs/internals/decisions/13-a-sync-of-futures.md`).

pub(crate) mod event_stream;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod http_transport;
pub(crate) mod page_stream;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod server_url;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod trust;

use async_trait::async_trait;
use crdt::NodeId;
use protocol::{
    EnableE2eeRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};

use crate::error::Result;

/// The maximum bytes of an answer, or of a page of a stream, after decompression: a page of
/// contents and one message as large as a server accepts. A larger answer is not Warren's.
pub const ANSWER_BYTES_MAX: u64 = 32 << 20;

/// The parameters of a pull, and what the device reports about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullParams {
    /// The sequence number up to which the device has everything.
    pub cursor: u64,
    /// The maximum number of messages in the answer.
    pub limit: usize,
    /// The node id in the timestamps of the device's changes.
    pub node_id: NodeId,
    /// The number of changes that the device has not sent yet.
    pub unsent_count: u64,
}

impl PullParams {
    /// Returns the path and query of the request.
    pub fn path(&self) -> String {
        let Self { cursor, limit, node_id, unsent_count } = self;
        format!(
            "/v1/sync/delta?cursor={cursor}&limit={limit}&node_id={node_id}&unsent_count={unsent_count}"
        )
    }
}

/// A connection to a server that does not block its thread.
#[async_trait(?Send)]
pub trait AsyncTransport {
    /// Registers a device with `POST /v1/devices`, with a password in the request or a registered
    /// device's token.
    async fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse>;
    /// Pulls a page of messages with `GET /v1/sync/delta`.
    async fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse>;
    /// Pulls all messages after a cursor as a stream with `GET /v1/sync/full`.
    async fn stream(&mut self, token: &str, cursor: u64) -> Result<Box<dyn AsyncPageStream>>;
    /// Pushes messages with `POST /v1/sync/delta`; `unsent_count` changes remain to be sent.
    async fn push(
        &mut self,
        token: &str,
        request: &PushRequest,
        unsent_count: u64,
    ) -> Result<PushResponse>;
    /// Claims ranges of messages with `POST /v1/sync/reconcile`.
    async fn reconcile(
        &mut self,
        token: &str,
        request: &ReconcileRequest,
    ) -> Result<ReconcileResponse>;
    /// Enables end-to-end encryption with `POST /v1/sync/e2ee`.
    async fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()>;
}

/// A stream of pages.
#[async_trait(?Send)]
pub trait AsyncPageStream {
    /// Returns the next page, or `None` at the end. An error means that the stream broke off; no
    /// page follows it.
    async fn next(&mut self) -> Result<Option<PullResponse>>;
}
