//! The server: Warren's HTTP API over the accounts of one data directory, and their vaults.
//!
//! ```text
//! accept ─► socket ─► router ─► extract ─► handlers ─► respond
//!                       └── every refusal becomes its body in one place ──┘
//! ```
//!
//! # Invariants
//! - An acknowledged push is on the disk; a stopping server answers what it has taken.
//! - Every input has a limit: connections, heads, bodies, counts, time.
//! - No internal text, key, token or message leaves in an error or a log line.
//!
//! # Not here
//! - What is stored and how → `sync-store`. Flags, signals, log output → `cli`.
#![forbid(unsafe_code)]

mod accept;
mod app;
mod clock;
mod config;
mod error;
mod extract;
mod handlers;
mod listeners;
mod metrics;
mod openapi;
mod respond;
mod router;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;

use sync_store::Postgres;
use tokio::net::TcpListener;

use crate::app::App;
pub use crate::config::{AdminToken, Config, Limits};
pub use crate::error::{Error, Result};

/// A server that listens, and answers once it runs.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
}

impl Server {
    /// Opens the data directory and takes the address.
    pub async fn bind(config: Config) -> Result<Self> {
        let address = config.listen;
        let listener = TcpListener::bind(address).await;
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|source| Error::Listen { address, source })?;
        let postgres = match &config.postgres {
            Some(url) => Some(Postgres::connect(url).await?),
            None => None,
        };
        let app = tokio::task::spawn_blocking(|| App::open(config, postgres)).await;
        let app = app.expect("opening does not panic")?;
        Ok(Self { listener, address, app: Arc::new(app) })
    }

    /// Where it listens: the port that was given, or the one that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `shutdown` is ready, then finishes those that it has taken, and
    /// closes every vault.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        let router = router::router(Arc::clone(&self.app));
        let upkeep = tokio::spawn(metrics::upkeep(Arc::clone(&self.app)));
        let listeners = Arc::clone(&self.app.listeners);
        let shutdown = async move {
            shutdown.await;
            // Nobody's answer is waited for that ends by itself never.
            listeners.close();
        };
        accept::serve(self.listener, router, &self.app, shutdown).await;
        upkeep.abort();
        let app = self.app;
        let closed = tokio::task::spawn_blocking(move || app.databases.shutdown());
        closed.await.expect("closing does not panic");
        Ok(())
    }
}

/// Binds and runs.
pub async fn serve(config: Config, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    Server::bind(config).await?.run(shutdown).await
}
