//! The accept loop: connections within their limit, and an orderly end.
//!
//! # Invariants
//! - At most `connections_max` connections are open; further ones wait in the system's queue. One
//!   network has a share of them; what it opens beyond that is refused and closed at once.
//! - After `shutdown` no connection and no further request is taken; those under way are answered,
//!   for at most [`SHUTDOWN_MAX`].

use std::error::Error;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::admission::connections::Place;
use crate::app::App;
use crate::extract::Peer;
use crate::gateway::Address;
use crate::socket::{self, Socket};
use crate::tls;

/// Less than the 30 seconds that orchestrators wait before they kill.
const SHUTDOWN_MAX: Duration = Duration::from_secs(25);
/// After an accept that failed for want of file descriptors, some may have come back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A head with a token, and whatever proxies add to it.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// What is read of a connection before somebody asks for it, and gathered before it is written.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// For a connection over its network's share. It has not been read, so this may be lost on the way.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\nconnection: close\r\ncontent-length: 85\r\n\r\n\
    {\"error\":{\"code\":\"busy\",\"message\":\"too many connections are open from this address\"}}";

/// A socket, and what answers on it.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) router: Router,
    /// A connection closes if in this time no head arrives.
    pub(crate) idle_max: Duration,
}

pub(crate) async fn serve(listener: Listener, app: &Arc<App>, shutdown: impl Future<Output = ()>) {
    let Listener { socket, router, idle_max } = listener;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).max_buf_size(BUFFER_BYTES_MAX);
    http.max_header_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (mut place, accepted) = tokio::select! {
            next = accept(&socket, app) => next,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                if !app.connections.admit(&mut place, peer, &app.proxies) {
                    if app.tls.is_none() {
                        // It takes what fits its buffer, which is new, or it has gone.
                        drop(stream.try_write(TOO_MANY_CONNECTIONS));
                    }
                    app.metrics.connection_refused();
                    continue;
                }
                let idle_max = app.connections.idle_max(idle_max);
                let mut http = http.clone();
                http.header_read_timeout(idle_max);
                let (app, router) = (Arc::clone(app), router.clone());
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    app.metrics.connected();
                    let counted = Arc::clone(&app);
                    let connection = Connection { http, watcher, peer, router, app };
                    if let Err(error) = connection.answer(stream, idle_max).await {
                        tracing::debug!(%error, "connection");
                    }
                    counted.metrics.disconnected();
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
    if tokio::time::timeout(SHUTDOWN_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!("stopped with requests under way");
    }
}

async fn accept(socket: &TcpListener, app: &App) -> (Place, std::io::Result<(TcpStream, IpAddr)>) {
    let place = app.connections.place().await;
    let accepted = socket.accept().await;
    (place, accepted.map(|(stream, peer)| (stream, peer.ip().to_canonical())))
}

/// One connection, and what answers on it.
struct Connection {
    http: http1::Builder,
    watcher: Watcher,
    peer: IpAddr,
    router: Router,
    app: Arc<App>,
}

type Broken = Box<dyn Error + Send + Sync>;

impl Connection {
    /// Answers requests until it closes.
    async fn answer(self, stream: TcpStream, handshake_max: Duration) -> Result<(), Broken> {
        // It may have gone before it was accepted.
        socket::prepare(&stream)?;
        let is_refused = Arc::new(AtomicBool::new(false));
        let socket = Socket::new(stream, Arc::clone(&is_refused));
        let Some(tls) = &self.app.tls else { return self.answer_on(socket, is_refused).await };
        let handshake = tls.acceptor().await.accept(socket);
        let stream =
            timeout(handshake_max, handshake).await.map_err(|_elapsed| tls::timed_out())??;
        self.answer_on(stream, is_refused).await
    }

    async fn answer_on(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        is_refused: Arc<AtomicBool>,
    ) -> Result<(), Broken> {
        let Self { http, watcher, peer, router, app } = self;
        let is_proxy = app.proxies.is_trusted(peer);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let client = app.proxies.client(peer, request.headers());
            let is_refused = Arc::clone(&is_refused);
            request.extensions_mut().insert(Address { client, is_proxied: is_proxy });
            request.extensions_mut().insert(Peer { address: client, is_proxy, is_refused });
            router.clone().oneshot(request)
        });
        Ok(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await?)
    }
}
