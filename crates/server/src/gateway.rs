//! The interface between the server and a gateway: another server's protocol on the same accounts,
//! vaults and limits.
//!
//! A gateway is a router on its own listener or under a path. Like every handler, it gets access
//! to a vault only with a password or a token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use accounts::{Accounts, Login, Password};
use axum::Router;
use axum::middleware::from_fn_with_state;
use engine::{Databases, clock};
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

/// The place at which a gateway is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayMount {
    /// A listener of its own; port 0 lets the system choose.
    Listener(SocketAddr),
    /// A path of the server's listener. It begins with a slash and does not end with one.
    Path(&'static str),
}

/// A gateway: its router, its mount, and how long its apps' connections may be idle.
pub struct Gateway {
    pub router: Router,
    pub mount: GatewayMount,
    pub idle_max: Duration,
}

/// The client of a request, in each request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct GatewayPeer {
    /// The address of the connection's peer, or of a trusted proxy's client.
    pub address: IpAddr,
    /// Whether the connection's peer is a trusted proxy, so that its headers can be trusted.
    pub is_proxied: bool,
}

/// The server's accounts and vaults, and permits for expensive work. Cloning is cheap.
#[derive(Clone)]
pub struct GatewayServices(pub(crate) Arc<AppState>);

impl GatewayServices {
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    /// Returns the open databases, so that other servers in the process share them.
    pub fn databases(&self) -> &Databases {
        &self.0.databases
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

    /// Waits for a permit, then runs work that shows whether a login's password is right.
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

    /// Waits for a permit, then runs work that hashes a new password of an authenticated user.
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

    /// Waits for a permit, then runs work that hashes the password of a new account.
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

    /// Counts a registration of an account, or refuses it.
    pub fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        self.0.logins.begin_registration(address)
    }

    /// Records that a device of this account was used from this address.
    pub fn record_use(&self, login: &Login, address: IpAddr) {
        self.0.logins.record_use(login, address);
    }

    /// Creates a memory reservation of no bytes.
    pub fn memory_reservation(&self, holder: MemoryOwner) -> MemoryReservation {
        self.0.memory_reservation(holder)
    }

    /// Whether the disk is full, so that writes of new data must be refused.
    pub fn is_disk_full(&self) -> bool {
        self.0.is_disk_full()
    }

    /// The current time in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// The time in which a short body must arrive.
    pub fn request_timeout(&self) -> Duration {
        self.0.config.request_timeout
    }

    /// Counts received messages.
    pub fn record_push(&self, stored: u64, known: u64) {
        self.0.metrics.record_push(stored, known);
    }

    /// Counts sent messages.
    pub fn record_pull(&self, count: usize) {
        self.0.metrics.record_pull(count);
    }
}

/// Wraps a router in the layers that surround every handler: they count requests, write refusals,
/// catch panics and refuse requests for other hosts.
pub(crate) fn wrap_router(router: Router, app: &Arc<AppState>, hosts: Arc<AllowedHosts>) -> Router {
    router
        .layer(CatchPanicLayer::custom(response::panic_response))
        .layer(from_fn_with_state(hosts, response::check_host))
        .layer(from_fn_with_state(Arc::clone(app), response::finish))
}
