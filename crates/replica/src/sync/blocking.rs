//! Runs a sync with a transport that blocks until each answer arrives.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use protocol::{
    EnableE2eeRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};

use super::SyncContext;
use super::file_account::AccountCheck;
use super::sync_report::SyncReport;
use crate::error::Result;
use crate::replica::Replica;
use crate::transport::{AsyncPageStream, AsyncTransport, PullParams};

/// A stream of pages, which ends with an error if it breaks off.
pub type PageStream = Box<dyn Iterator<Item = Result<PullResponse>>>;

/// A blocking [`AsyncTransport`]: each call waits for its answer.
#[expect(missing_docs, reason = "as in AsyncTransport")]
pub trait Transport {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse>;
    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse>;
    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream>;
    fn push(&mut self, token: &str, request: &PushRequest, unsent: u64) -> Result<PushResponse>;
    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse>;
    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()>;
}

impl Replica {
    /// Registers this file like [`Self::sign_in_async`], but blocks.
    pub fn sign_in(
        &self,
        transport: &mut dyn Transport,
        server: &str,
        request: &RegisterDeviceRequest,
        check: AccountCheck,
    ) -> Result<()> {
        block_on_ready(self.sign_in_async(&mut BlockingAdapter(transport), server, request, check))
    }

    /// Syncs like [`Self::sync_async`], but blocks.
    pub fn sync(
        &self,
        transport: &mut dyn Transport,
        options: SyncContext<'_>,
    ) -> Result<SyncReport> {
        block_on_ready(self.sync_async(&mut BlockingAdapter(transport), options))
    }
}

struct BlockingAdapter<'a>(&'a mut dyn Transport);

#[async_trait(?Send)]
impl AsyncTransport for BlockingAdapter<'_> {
    async fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.0.register(token, request)
    }

    async fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.0.pull(token, pull)
    }

    async fn stream(&mut self, token: &str, cursor: u64) -> Result<Box<dyn AsyncPageStream>> {
        Ok(Box::new(self.0.stream(token, cursor)?))
    }

    async fn push(
        &mut self,
        token: &str,
        request: &PushRequest,
        unsent: u64,
    ) -> Result<PushResponse> {
        self.0.push(token, request, unsent)
    }

    async fn reconcile(
        &mut self,
        token: &str,
        request: &ReconcileRequest,
    ) -> Result<ReconcileResponse> {
        self.0.reconcile(token, request)
    }

    async fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.0.encrypt(token, request)
    }
}

#[async_trait(?Send)]
impl AsyncPageStream for PageStream {
    async fn next(&mut self) -> Result<Option<PullResponse>> {
        Iterator::next(self).transpose()
    }
}

/// Runs a future that is ready at once.
fn block_on_ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a transport that waits is never pending"),
    }
}
