//! The accept loop: limits the connections and stops in an orderly way.
//!
//! # Invariants
//! - At most `connections_max` connections are open, and of each network at most its share. A
//!   further one replaces another, or is refused and closed at once (`admission/connections.rs`).
//! - After `shutdown`, no connection and no further request is accepted; running requests are
//!   answered, for at most [`SHUTDOWN_MAX`].

use std::convert::Infallible;
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

use super::peer::RequestPeer;
use super::socket::{self, ClientSocket};
use super::tls;
use crate::admission::connections::{
    ConnectionPermit, OpenConnection, request_body, response_body,
};
use crate::app_state::AppState;
use crate::gateway::GatewayPeer;

/// The time for running requests at a shutdown: less than the 30 s after which orchestrators kill
/// the process.
const SHUTDOWN_MAX: Duration = Duration::from_secs(25);
/// The pause after an accept that failed for lack of file descriptors, until some may be free
/// again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The maximum size of a head: enough for a token and the headers that proxies add.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The bytes of a connection that are read ahead, and collected before they are written.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// The response to a connection that gets no permit. The connection has not been read from, so the
/// response may be lost on the way.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\nconnection: close\r\ncontent-length: 67\r\n\r\n\
    {\"error\":{\"code\":\"busy\",\"message\":\"too many connections are open\"}}";

/// A listening socket and the router for its requests.
pub(crate) struct HttpListener {
    pub(crate) socket: TcpListener,
    pub(crate) router: Router,
    /// The time after which a connection closes if no head arrives.
    pub(crate) idle_max: Duration,
}

pub(crate) async fn serve(
    listener: HttpListener,
    app: &Arc<AppState>,
    shutdown: impl Future<Output = ()>,
) {
    let HttpListener { socket, router, idle_max } = listener;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).max_buf_size(BUFFER_BYTES_MAX);
    http.max_header_size(HEAD_BYTES_MAX).header_read_timeout(idle_max);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&socket, app) => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok(NewConnection { stream, place: None, .. }) => {
                if app.tls.is_none() {
                    // The new socket's buffer has space for all of it, unless the client has gone.
                    drop(stream.try_write(TOO_MANY_CONNECTIONS));
                }
                app.metrics.record_refused_connection();
            }
            Ok(NewConnection { stream, peer, place: Some(place) }) => {
                let (app, router, http) = (Arc::clone(app), router.clone(), http.clone());
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    app.metrics.record_connect();
                    let open = Arc::clone(&place.connection);
                    let counted = Arc::clone(&app);
                    let connection = HttpConnection {
                        http,
                        watcher,
                        peer,
                        router,
                        app,
                        open: Arc::clone(&open),
                    };
                    tokio::select! {
                        ended = connection.answer(stream, idle_max) => {
                            if let Err(error) = ended {
                                tracing::debug!(%error, "connection");
                            }
                        }
                        () = open.closed() => {}
                    }
                    counted.metrics.record_disconnect();
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
    if tokio::time::timeout(SHUTDOWN_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!("stopped before all requests had finished");
    }
}

/// A new connection.
struct NewConnection {
    stream: TcpStream,
    peer: IpAddr,
    /// The permit, if the connection gets one.
    place: Option<ConnectionPermit>,
}

async fn accept(socket: &TcpListener, app: &AppState) -> std::io::Result<NewConnection> {
    let (stream, peer) = socket.accept().await?;
    let peer = peer.ip().to_canonical();
    let place = app.connections.acquire(peer, &app.proxies).await;
    Ok(NewConnection { stream, peer, place })
}

/// One connection and the router for its requests.
struct HttpConnection {
    http: http1::Builder,
    watcher: Watcher,
    peer: IpAddr,
    router: Router,
    app: Arc<AppState>,
    open: Arc<OpenConnection>,
}

type ConnectionError = Box<dyn Error + Send + Sync>;

impl HttpConnection {
    /// Answers requests until the connection closes.
    async fn answer(
        self,
        stream: TcpStream,
        handshake_max: Duration,
    ) -> Result<(), ConnectionError> {
        // The client may have gone before its connection was accepted.
        socket::prepare(&stream)?;
        let is_refused = Arc::new(AtomicBool::new(false));
        let socket = ClientSocket::new(stream, Arc::clone(&is_refused));
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
    ) -> Result<(), ConnectionError> {
        let Self { http, watcher, peer, router, app, open } = self;
        let is_proxy = app.proxies.is_trusted(peer);
        let service = service_fn(move |request: Request<Incoming>| {
            let client = app.proxies.client(peer, request.headers());
            let is_refused = Arc::clone(&is_refused);
            let mut request = request.map(|body| request_body(body, Arc::clone(&open)));
            request.extensions_mut().insert(GatewayPeer { address: client, is_proxied: is_proxy });
            request.extensions_mut().insert(RequestPeer { address: client, is_proxy, is_refused });
            let entry = is_proxy.then(|| app.connections.enter(&open, client));
            let (router, open) = (router.clone(), Arc::clone(&open));
            async move {
                let answer = router.oneshot(request).await?;
                Ok::<_, Infallible>(answer.map(|body| response_body(body, open, entry)))
            }
        });
        Ok(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await?)
    }
}
