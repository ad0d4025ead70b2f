//! Sends requests over one HTTP/1.1 connection that is kept open: this is cheap, which matters
//! because the load generator shares its cores with the measured service.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The time limit of one request and its response, whatever its size.
const REQUEST_TIME_MAX: Duration = Duration::from_mins(2);
/// The size limit of a response, which is a page of messages with framing.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A connection that reopens itself after the server has closed it.
pub(crate) struct BenchConnection {
    address: SocketAddr,
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) struct BenchResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl BenchConnection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let host = HeaderValue::try_from(address.to_string())?;
        Ok(Self { address, host, sender: connect(address).await? })
    }

    /// Sends a request, whose URI is a path; the host is added.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> anyhow::Result<BenchResponse> {
        request.headers_mut().insert(HOST, self.host.clone());
        let answer = tokio::time::timeout(REQUEST_TIME_MAX, self.send_now(request)).await;
        answer.context("no response")?
    }

    async fn send_now(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<BenchResponse> {
        if self.sender.ready().await.is_err() {
            self.sender = connect(self.address).await?;
        }
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
        Ok(BenchResponse { status, body })
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // The task ends with the sender, whose calls report connection errors.
    tokio::spawn(connection);
    Ok(sender)
}

impl BenchResponse {
    /// Returns the body of a successful response.
    pub(crate) fn success(self) -> anyhow::Result<Bytes> {
        ensure!(
            self.status.is_success(),
            "{}: {}",
            self.status,
            String::from_utf8_lossy(&self.body[..self.body.len().min(200)])
        );
        Ok(self.body)
    }
}

/// Parses an address like `http://127.0.0.1:4600`.
pub(crate) fn socket_address(address: &str) -> anyhow::Result<SocketAddr> {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    host.parse().with_context(|| format!("invalid address {address}"))
}
