//! The server: Warren's HTTP API for the accounts and vaults of one data directory.
//!
//! ```text
//! accept ─► socket ─► router ─► extract ─► handlers ─► response
//!                       └── every refusal becomes its body in one place ──┘
//! ```
//!
//! # Invariants
//! - An acknowledged push is on the disk. A stopping server answers the requests that it has
//!   accepted.
//! - Every input has a limit: connections, heads, bodies, counts, time. Everything that a client
//!   makes the server hold counts against its account and its network (`admission`).
//! - No error and no log line contains internal texts, keys, tokens or messages.
//!
//! # Not here
//! - Storage → `sync-store`. Flags, signals, log output → `cli`.
#![forbid(unsafe_code)]

mod admission;
mod app_state;
mod blocking;
mod config;
mod error;
mod gateway;
mod handlers;
mod http;
mod mail_totals;
mod metrics;
mod revocations;
mod subscribers;

use std::net::SocketAddr;
use std::sync::Arc;

use sync_store::PostgresDatabase;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use crate::admission::body::{BodyError, BodyLimits, IncomingBody};
pub use crate::admission::hosts::{HostName, InvalidHost};
pub use crate::admission::logins::LoginError;
pub use crate::admission::memory::{MESSAGE_BYTES, MemoryOwner, MemoryReservation, page_bytes};
pub use crate::admission::proxies::{InvalidProxy, TrustedProxy};
pub use crate::admission::rate_limiter::TooManyAttempts;
use crate::app_state::AppState;
pub use crate::config::{AdminToken, Config, DefaultAccountLimits, InvalidAdminToken};
pub use crate::error::{Error, OverloadError, Result, TlsError, TlsFiles};
pub use crate::gateway::{Gateway, GatewayMount, GatewayPeer, GatewayServices};
use crate::http::accept::HttpListener;
pub use crate::http::cors::{AllowedOrigin, InvalidOrigin};
pub use crate::http::peer::UnreadBodyMarker;
pub use crate::http::site::{Asset, StaticSite};
pub use crate::http::stream_body::{StreamAborted, body_from_channel};
pub use crate::mail_totals::{MailTotals, MailTotalsReader};

/// The number of connections that the system holds until they are accepted. Further ones wait for
/// seconds, because the client's system retries. So the number covers a flood that arrives while
/// others are accepted.
const UNACCEPTED_COUNT_MAX: u32 = 4_096;

/// A server that listens already, and answers once [`Self::run`] is called.
pub struct SyncServer {
    socket: TcpListener,
    address: SocketAddr,
    gateways: Vec<Gateway>,
    /// The listeners of gateways that have their own.
    listeners: Vec<HttpListener>,
    app: Arc<AppState>,
}

impl SyncServer {
    /// Opens the data directory and binds the address.
    pub async fn bind(config: Config) -> Result<Self> {
        let (address, socket) = listen(config.listen)?;
        let postgres = match &config.postgres {
            Some(url) => Some(PostgresDatabase::connect(url).await?),
            None => None,
        };
        let app = engine::run_blocking(|| AppState::open(config, postgres)).await??;
        let app = Arc::new(app);
        revocations::apply(&app).await?;
        Ok(Self { socket, address, gateways: Vec::new(), listeners: Vec::new(), app })
    }

    /// Returns the services from which a gateway is built.
    pub fn services(&self) -> GatewayServices {
        GatewayServices(Arc::clone(&self.app))
    }

    /// Adds a gateway for another server's apps and returns the address at which they reach it.
    pub fn add_gateway(&mut self, gateway: Gateway) -> Result<SocketAddr> {
        let GatewayMount::Listener(address) = gateway.mount else {
            self.gateways.push(gateway);
            return Ok(self.address);
        };
        let Gateway { router, idle_max, .. } = gateway;
        let (address, socket) = listen(address)?;
        let router = gateway::wrap_router(router, &self.app, self.app.hosts(address));
        self.listeners.push(HttpListener { socket, router, idle_max });
        Ok(address)
    }

    /// Shows the state of a mail server in the same process to the operator. Only the first call
    /// counts.
    pub fn show_mail(&self, reader: MailTotalsReader) {
        self.app.mail.get_or_init(|| reader);
    }

    /// The address of the server's listener: with the given port, or the one that the system chose
    /// for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The scheme of every listener: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.app.tls.is_some() { "https" } else { "http" }
    }

    /// Answers requests until `shutdown` is ready, then finishes the accepted ones and closes
    /// every vault.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        let Self { socket, address, gateways, mut listeners, app } = self;
        let router = http::router::router(&app, &gateways, app.hosts(address));
        let idles = gateways.iter().map(|gateway| gateway.idle_max);
        let idle_max = idles.fold(app.config.request_timeout, Ord::max);
        listeners.push(HttpListener { socket, router, idle_max });
        let upkeep = tokio::spawn(handlers::metrics::upkeep(Arc::clone(&app)));
        let (stop, stopped) = watch::channel(());
        let mut serving = JoinSet::new();
        for listener in listeners {
            let (app, mut stopped) = (Arc::clone(&app), stopped.clone());
            // An error means that the sender is gone, which also ends the listener.
            let shutdown = async move { drop(stopped.changed().await) };
            serving.spawn(async move { http::accept::serve(listener, &app, shutdown).await });
        }
        shutdown.await;
        // Event streams never end on their own, so they are ended before the server waits for
        // responses.
        app.subscribers.close();
        drop(stop);
        while let Some(served) = serving.join_next().await {
            served.expect("accepting does not panic");
        }
        upkeep.abort();
        Ok(engine::run_blocking(move || app.databases.shutdown()).await?)
    }
}

fn listen(address: SocketAddr) -> Result<(SocketAddr, TcpListener)> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // Otherwise a server could not restart while its last connections end.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(UNACCEPTED_COUNT_MAX)?;
        Ok((socket.local_addr()?, socket))
    };
    bind().map_err(|source| Error::Listen { address, source })
}

/// Binds and runs a server: [`SyncServer::bind`] and [`SyncServer::run`].
pub async fn serve(config: Config, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    SyncServer::bind(config).await?.run(shutdown).await
}
