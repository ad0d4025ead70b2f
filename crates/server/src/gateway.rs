//! What a gateway gets from the server: a protocol of another server's apps, on the same accounts,
//! vaults and limits.
//!
//! A gateway is a router of its own, on a listener of its own or under a path. It has no access to
//! a vault but by a password or a token, as every handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use accounts::{Accounts, Login, Password};
use axum::Router;
use axum::middleware::from_fn_with_state;
use engine::clock;
use sync_store::Vaults;
use tower_http::catch_panic::CatchPanicLayer;

use crate::admission::hosts::AllowedHosts;
use crate::admission::logins::LoginError;
use crate::admission::memory::{MemoryOwner, MemoryReservation};
use crate::admission::rate_limiter::TooManyAttempts;
use crate::app_state::AppState;
use crate::blocking;
use crate::error::OverloadError;
use crate::http::response;

/// Where a gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayMount {
    /// On a listener of its own; port 0 lets the system choose.
    Listener(SocketAddr),
    /// On the server's listener, under a path that begins with a slash and ends without one.
    Path(&'static str),
}

/// A router, where it is, and how long its apps' connections may be idle.
pub struct Gateway {
    pub router: Router,
    pub mount: GatewayMount,
    pub idle_max: Duration,
}

/// Who asks. In each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct GatewayPeer {
    /// The other side of the connection, or the client of a trusted proxy.
    pub address: IpAddr,
    /// Whether the other side of the connection is a trusted proxy: then its headers are its own
    /// word.
    pub is_proxied: bool,
}

/// The server's accounts and vaults, and turns for what is dear. Cheap to clone.
#[derive(Clone)]
pub struct GatewayServices(pub(crate) Arc<AppState>);

impl GatewayServices {
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    pub fn vaults(&self) -> &Vaults {
        &self.0.vaults
    }

    /// Runs work that reads files or takes more than a moment.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, OverloadError>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let services = self.clone();
        blocking::run_blocking(move || work(&services)).await
    }

    /// Runs work that shows whether a login's password is right, when its turn comes.
    pub async fn log_in<T, F>(
        &self,
        login: Login,
        password: Password,
        address: IpAddr,
        work: F,
    ) -> Result<T, LoginError>
    where
        F: FnOnce(&Accounts, &Login, &Password) -> Result<T, accounts::Error> + Send + 'static,
        T: Send + 'static,
    {
        let work = move |app: &AppState, login: &Login, password: &Password| {
            work(&app.accounts, login, password)
        };
        self.0.log_in(login, password, address, work).await
    }

    /// Runs work that hashes a new password of somebody who has proven who they are.
    pub async fn hash_for_authenticated<T, F>(
        &self,
        address: IpAddr,
        work: F,
    ) -> Result<T, OverloadError>
    where
        F: FnOnce(&Accounts) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.0.hash_for_authenticated(address, move |app| work(&app.accounts)).await
    }

    /// Runs work that hashes the password of a new account.
    pub async fn hash_for_registration<T, F>(
        &self,
        address: IpAddr,
        work: F,
    ) -> Result<T, OverloadError>
    where
        F: FnOnce(&Accounts) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.0.hash_for_registration(address, move |app| work(&app.accounts)).await
    }

    /// Counts an account that somebody makes.
    pub fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        self.0.logins.begin_registration(address)
    }

    /// Notes that a device of this account was here.
    pub fn record_use(&self, login: &Login, address: IpAddr) {
        self.0.logins.record_use(login, address);
    }

    /// An empty room in memory.
    pub fn memory_reservation(&self, holder: MemoryOwner) -> MemoryReservation {
        self.0.memory_reservation(holder)
    }

    /// Whether what stores new data is to be refused: the disk is full.
    pub fn is_disk_full(&self) -> bool {
        self.0.is_disk_full()
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// In which a short body must arrive.
    pub fn request_timeout(&self) -> Duration {
        self.0.config.request_timeout
    }

    /// Counts messages that came.
    pub fn record_push(&self, stored: u64, known: u64) {
        self.0.metrics.record_push(stored, known);
    }

    /// Counts messages that left.
    pub fn record_pull(&self, count: usize) {
        self.0.metrics.record_pull(count);
    }
}

/// Routes within what surrounds every handler: requests are counted, refusals written, panics
/// caught, other hosts' requests refused.
pub(crate) fn wrap_router(router: Router, app: &Arc<AppState>, hosts: Arc<AllowedHosts>) -> Router {
    router
        .layer(CatchPanicLayer::custom(response::panic_response))
        .layer(from_fn_with_state(hosts, response::check_host))
        .layer(from_fn_with_state(Arc::clone(app), response::finish))
}
