//! What a gateway gets from the server: a protocol of another server's apps, on the same accounts,
//! vaults and limits.
//!
//! A gateway is a router of its own, on a listener of its own or under a path. It has no access to
//! a vault but by a password or a token, as every handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use accounts::Accounts;
use axum::Router;
use axum::middleware::from_fn_with_state;
use sync_store::Vaults;
use tokio::sync::OwnedSemaphorePermit;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{self, App};
use crate::error::Overload;
use crate::{clock, respond};

/// Where a gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a listener of its own; port 0 lets the system choose.
    Listener(SocketAddr),
    /// On the server's listener, under a path that begins with a slash and ends without one.
    Path(&'static str),
}

/// A router, where it is, and how long its apps' connections may be idle.
pub struct Gateway {
    pub router: Router,
    pub place: Place,
    pub idle_max: Duration,
}

/// Who asks: the other side of the connection. In each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub IpAddr);

/// In an answer's extensions: the request's body was not read to its end, so the connection closes
/// after it, and the peer is listened to for a moment longer.
#[derive(Clone, Copy, Debug)]
pub struct Unread;

/// The server's accounts and vaults, and turns for what is dear. Cheap to clone.
#[derive(Clone)]
pub struct Services(pub(crate) Arc<App>);

impl Services {
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    pub fn vaults(&self) -> &Vaults {
        &self.0.vaults
    }

    /// Runs work that reads files or takes more than a moment.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let services = self.clone();
        app::detached(move || work(&services)).await
    }

    /// Runs work that hashes a password, when its turn comes.
    pub async fn with_password<T, F>(&self, work: F) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let services = self.clone();
        self.0.in_turn(move |_| work(&services)).await
    }

    /// Room for a body of so many bytes; it is given back when this is dropped.
    pub async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Overload> {
        self.0.room(bytes).await
    }

    /// Whether what stores new data is to be refused: the disk is full.
    pub fn is_disk_full(&self) -> bool {
        self.0.is_disk_full()
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// In which more of a body must arrive.
    pub fn request_timeout(&self) -> Duration {
        self.0.config.request_timeout
    }

    /// Counts messages that came.
    pub fn stored(&self, stored: u64, known: u64) {
        self.0.metrics.pushed(stored, known);
    }

    /// Counts messages that left.
    pub fn sent(&self, count: usize) {
        self.0.metrics.pulled(count);
    }
}

/// Routes within what surrounds every handler: requests are counted, refusals written, panics
/// caught.
pub(crate) fn surround(router: Router, app: &Arc<App>) -> Router {
    router
        .layer(CatchPanicLayer::custom(respond::panicked))
        .layer(from_fn_with_state(Arc::clone(app), respond::finish))
}
