//! The accept loop: connections within their limit, and an orderly end.
//!
//! # Invariants
//! - At most `connections_max` connections are open; further ones wait in the system's queue.
//! - After `shutdown` no connection and no further request is taken; those under way are answered,
//!   for at most [`SHUTDOWN_MAX`].

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::app::App;
use crate::extract::Peer;
use crate::gateway::Address;
use crate::socket::{self, Socket};

/// Less than the 30 seconds that orchestrators wait before they kill.
const SHUTDOWN_MAX: Duration = Duration::from_secs(25);
/// After an accept that failed for want of file descriptors, some may have come back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A head with a token, and whatever proxies add to it.
const HEAD_BYTES_MAX: usize = 16 << 10;

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
    http.timer(TokioTimer::new()).header_read_timeout(idle_max);
    http.max_header_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (permit, accepted) = tokio::select! {
            next = accept(&socket, &app.connections) => next,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok(stream) => {
                let (app, router) = (Arc::clone(app), router.clone());
                let answered = connection(http.clone(), graceful.watcher(), stream, router);
                tokio::spawn(async move {
                    app.metrics.connected();
                    answered.await;
                    app.metrics.disconnected();
                    drop(permit);
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

async fn accept(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (OwnedSemaphorePermit, std::io::Result<TcpStream>) {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.expect("nobody closes the semaphore");
    (permit, socket.accept().await.map(|(stream, _)| stream))
}

/// Answers one connection's requests until it closes.
async fn connection(http: http1::Builder, watcher: Watcher, stream: TcpStream, router: Router) {
    let prepared = socket::prepare(&stream).and_then(|()| stream.peer_addr());
    let address = match prepared {
        Ok(address) => address.ip().to_canonical(),
        // It was gone before it was accepted.
        Err(error) => return tracing::debug!(%error, "connection"),
    };
    let is_refused = Arc::new(AtomicBool::new(false));
    let socket = Socket::new(stream, Arc::clone(&is_refused));
    let peer = Peer { address, is_refused };
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Address(address));
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request)
    });
    let connection = http.serve_connection(TokioIo::new(socket), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "connection");
    }
}
