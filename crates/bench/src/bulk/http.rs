//! Sends pages over HTTP to Warren, and to a server that only reads them.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use crdt::Message;
use engine::clock::now;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response, server};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use protocol::{JSON, PROTOBUF, PushRequest, PushResponse};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::http::BenchConnection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageEncoding {
    Protobuf,
    Json,
}

/// Encoded requests, ready to be sent.
#[derive(Debug)]
pub(super) struct PreparedRequests {
    encoding: PageEncoding,
    bodies: Vec<Bytes>,
}

impl PageEncoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Protobuf => "protobuf",
            Self::Json => "JSON",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => PROTOBUF,
            Self::Json => JSON,
        }
    }
}

impl PreparedRequests {
    pub(super) fn new(encoding: PageEncoding, pages: &[Vec<Message>]) -> anyhow::Result<Self> {
        let bodies = pages.iter().map(|page| {
            let push = PushRequest {
                messages: page.iter().cloned().map(Into::into).collect(),
                ..PushRequest::default()
            };
            Ok(match encoding {
                PageEncoding::Protobuf => push.encode_to_vec().into(),
                PageEncoding::Json => serde_json::to_vec(&push)?.into(),
            })
        });
        Ok(Self { encoding, bodies: bodies.collect::<anyhow::Result<_>>()? })
    }

    /// Pushes the pages to Warren, each after the previous page was acknowledged. Fails unless
    /// exactly `count` messages were stored.
    pub(super) async fn push(
        &self,
        address: SocketAddr,
        token: &str,
        count: usize,
    ) -> anyhow::Result<Duration> {
        // This empty push creates the vault before the clock starts; the bare loop's file is also
        // created before.
        let nothing = Self::new(self.encoding, &[Vec::new()])?;
        nothing.send(address, token, |_| Ok(())).await?;
        let mut stored = 0;
        let took = self.send(address, token, |answer| {
            let response: PushResponse = match self.encoding {
                PageEncoding::Protobuf => PushResponse::decode(answer)?,
                PageEncoding::Json => serde_json::from_slice(&answer)?,
            };
            stored += response.stored_count;
            Ok(())
        });
        let took = took.await?;
        ensure!(stored == count as u64, "the server stored {stored} of {count} messages");
        Ok(took)
    }

    /// Sends the pages to a server that only reads them.
    pub(super) async fn move_bytes(&self, address: SocketAddr) -> anyhow::Result<Duration> {
        self.send(address, "", |_| Ok(())).await
    }

    async fn send(
        &self,
        address: SocketAddr,
        token: &str,
        mut answered: impl FnMut(Bytes) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let mut connection = BenchConnection::open(address).await?;
        let start = now();
        for body in &self.bodies {
            let request = Request::builder()
                .method("POST")
                .uri("/v1/sync/delta")
                .header(CONTENT_TYPE, self.encoding.media_type())
                .header(ACCEPT, self.encoding.media_type())
                .header(AUTHORIZATION, format!("Bearer {token}"))
                .body(Full::new(body.clone()))?;
            answered(connection.send(request).await?.success()?)?;
        }
        Ok(start.elapsed())
    }
}

/// Starts a server that reads each body to its end and then responds.
pub(super) fn start_sink(runtime: &Runtime) -> anyhow::Result<SocketAddr> {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.context("no free port")?;
    let address = listener.local_addr()?;
    // The task ends with the runtime.
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Broken connections need no handling here, because the client reports them.
            tokio::spawn(async move {
                let connection = server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(read));
                drop(connection.await);
            });
        }
    });
    Ok(address)
}

async fn read(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut body = request.into_body();
    // Each frame is dropped when it arrives.
    while let Some(Ok(_)) = body.frame().await {}
    Ok(Response::new(Full::new(Bytes::from_static(b"read"))))
}
