//! How a replica talks to a server: in programs by calls that wait, in a browser by futures.
//!
//! The sync is written once, over futures. A transport that waits makes futures that are ready at
//! once, so a program needs no runtime (`docs/internals/decisions/13-a-sync-of-futures.md`).

pub(crate) mod event_stream;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod http_transport;
pub(crate) mod page_stream;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod trust;

use async_trait::async_trait;
use crdt::NodeId;
use protocol::{
    EnableE2eeRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};

use crate::error::Result;

/// Bytes of an answer, or of a page of a stream, as they come out of whatever decodes them: a page
/// of contents and one message as large as a server takes; more is no answer of ours.
pub const ANSWER_BYTES_MAX: u64 = 32 << 20;

/// What a pull asks for, and what the device says of itself with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullParams {
    /// The sequence number up to which it has everything.
    pub cursor: u64,
    /// Messages in the answer at most.
    pub limit: usize,
    /// Under which name it timestamps its changes.
    pub node_id: NodeId,
    /// Changes that it has yet to send.
    pub unsent_count: u64,
}

impl PullParams {
    /// Path and query of the request.
    pub fn path(&self) -> String {
        let Self { cursor, limit, node_id, unsent_count } = self;
        format!(
            "/v1/sync/delta?cursor={cursor}&limit={limit}&node_id={node_id}&unsent_count={unsent_count}"
        )
    }
}

/// How a replica talks to a server without keeping its thread.
#[async_trait(?Send)]
pub trait AsyncTransport {
    /// `POST /v1/devices`, with a password in the request or the token of a registered device.
    async fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse>;
    /// `GET /v1/sync/delta`.
    async fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse>;
    /// `GET /v1/sync/full`.
    async fn stream(&mut self, token: &str, cursor: u64) -> Result<Box<dyn AsyncPageStream>>;
    /// `POST /v1/sync/delta`; `unsent_count` is how many changes there are to send after these.
    async fn push(
        &mut self,
        token: &str,
        request: &PushRequest,
        unsent_count: u64,
    ) -> Result<PushResponse>;
    /// `POST /v1/sync/reconcile`.
    async fn reconcile(
        &mut self,
        token: &str,
        request: &ReconcileRequest,
    ) -> Result<ReconcileResponse>;
    /// `POST /v1/sync/e2ee`.
    async fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()>;
}

/// Pages one after the other.
#[async_trait(?Send)]
pub trait AsyncPageStream {
    /// The next page; `None` at the end. After an error, which says that the stream broke off,
    /// comes nothing more.
    async fn next(&mut self) -> Result<Option<PullResponse>>;
}
