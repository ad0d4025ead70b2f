//! What every handler shares: the accounts, the vaults, the settings, and where blocking work goes.
//!
//! # Invariants
//! - Async tasks never touch a file or hash a password: that runs on blocking threads.
//! - At most one password per core is hashed at a time; each takes tens of megabytes.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use accounts::{Accounts, Session};
use engine::Databases;
use protocol::ErrorCode;
use sync_store::{DataLock, Files, Postgres, Quota, Vaults};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::census::Census;
use crate::clock;
use crate::config::Config;
use crate::error::{Overload, Refusal, Result};
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::site::Site;

/// How long a login or a comparison waits for its turn. Longer than a device would, so that a burst is served, not
/// refused.
const TURN_WAIT_MAX: Duration = Duration::from_secs(20);

/// Of all bodies that are read and decoded at one time, whatever the number of connections: 1 GiB.
const BODIES_KIB_MAX: u32 = 1 << 20;

/// What is kept free on the disk of the data directory: enough for the checkpoint of a long WAL.
const RESERVE_BYTES: u64 = 16 << 20;

pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) accounts: Accounts,
    pub(crate) databases: Arc<Databases>,
    pub(crate) vaults: Vaults,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) metrics: Metrics,
    pub(crate) census: Census,
    /// One turn, for maintenance that the operator asks for.
    pub(crate) maintaining: Arc<Semaphore>,
    pub(crate) site: Site,
    /// Connections that there is room for, on all listeners together.
    pub(crate) connections: Arc<Semaphore>,
    passwords: Arc<Semaphore>,
    comparisons: Arc<Semaphore>,
    /// KiB of bodies that there is room for.
    bodies: Arc<Semaphore>,
    /// Last: given back when all else is closed.
    _lock: DataLock,
}

impl App {
    /// `postgres` has the vaults, if the configuration names one.
    pub(crate) fn open(config: Config, postgres: Option<Postgres>) -> Result<Self> {
        let lock = DataLock::take(&config.data, "warren serve")?;
        let databases = Arc::new(Databases::start(config.databases)?);
        databases.keep_reserve(config.data.join("reserve"), RESERVE_BYTES)?;
        let accounts = Accounts::open(&databases, &config.data, config.kdf)?;
        let accounts = accounts.with_clients_max(config.limits.clients_max);
        let files = || {
            let files = Files::new(Arc::clone(&databases), config.data.clone());
            files.repairing(config.repair_record)
        };
        let vaults = postgres.map_or_else(|| Vaults::Files(files()), Vaults::Postgres);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let turns = |count| Arc::new(Semaphore::new(count));
        let (of_account, of_all) = (config.account_listeners_max, config.listeners_max());
        Ok(Self {
            listeners: Arc::new(Listeners::new(of_account, of_all)),
            metrics: Metrics::new(),
            census: Census::default(),
            maintaining: turns(1),
            site: Site::new(config.site),
            connections: turns(config.connections_max),
            passwords: turns(cores),
            comparisons: turns(cores),
            bodies: turns(BODIES_KIB_MAX as usize),
            config,
            accounts,
            databases,
            vaults,
            _lock: lock,
        })
    }

    /// A turn to compare sets; it ends when it is dropped.
    pub(crate) async fn comparison(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Ok(turn(&self.comparisons, "too many comparisons are under way").await?)
    }

    /// Room for a body of so many bytes; it is given back when this is dropped.
    pub(crate) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Overload> {
        let kib = u32::try_from(bytes >> 10).map_or(BODIES_KIB_MAX, |kib| kib + 1);
        let room = Arc::clone(&self.bodies).acquire_many_owned(kib.min(BODIES_KIB_MAX));
        match tokio::time::timeout(self.config.request_timeout, room).await {
            Ok(room) => Ok(room.expect("nobody closes the semaphore")),
            Err(_elapsed) => Err(Overload::Busy("too many large requests are under way")),
        }
    }

    /// Refuses what stores new data in the vaults' files while the disk is full: what room there is
    /// belongs to checkpoints and deletions.
    pub(crate) fn check_disk(&self) -> Result<(), Refusal> {
        if self.is_disk_full() { Err(Refusal::of(ErrorCode::DiskFull)) } else { Ok(()) }
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self.vaults, Vaults::Files(_)) && self.databases.is_disk_full()
    }

    /// Whether this is the operator's token. Guesses are slowed by address.
    pub(crate) fn is_operator(&self, token: &str, address: IpAddr) -> Result<bool, Refusal> {
        let is_right = || self.config.admin_token.as_ref().is_some_and(|admin| admin.is(token));
        Ok(self.accounts.check_secret(address, clock::now_ms(), is_right)?)
    }

    /// How much the vault of a device's account may hold.
    pub(crate) fn quota(&self, session: &Session) -> Quota {
        let (own, default) = (session.limits, self.config.limits);
        Quota {
            messages_max: own.messages_max.unwrap_or(default.messages_max),
            bytes_max: own.bytes_max.unwrap_or(default.bytes_max),
        }
    }

    /// Runs work that hashes a password, when its turn comes.
    pub(crate) async fn with_password<T, F>(self: &Arc<Self>, work: F) -> Result<T, Refusal>
    where
        F: FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
        T: Send + 'static,
    {
        self.in_turn(work).await?
    }

    /// [`Self::with_password`], whatever the work returns.
    pub(crate) async fn in_turn<T, F>(self: &Arc<Self>, work: F) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let turn = turn(&self.passwords, "too many logins are under way").await?;
        let app = Arc::clone(self);
        detached(move || {
            // Kept by the work, not by the request, which may be gone long before.
            let _turn = turn;
            work(&app)
        })
        .await
    }
}

async fn turn(
    turns: &Arc<Semaphore>,
    busy: &'static str,
) -> Result<OwnedSemaphorePermit, Overload> {
    match tokio::time::timeout(TURN_WAIT_MAX, Arc::clone(turns).acquire_owned()).await {
        Ok(turn) => Ok(turn.expect("nobody closes the semaphore")),
        Err(_elapsed) => Err(Overload::Busy(busy)),
    }
}

/// Runs work that reads files or takes more than a moment.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, Refusal>
where
    F: FnOnce() -> Result<T, Refusal> + Send + 'static,
    T: Send + 'static,
{
    detached(work).await?
}

/// [`blocking`], whatever the work returns.
pub(crate) async fn detached<T, F>(work: F) -> Result<T, Overload>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(result) => Ok(result),
        // Caught by the router's outermost layer, like any handler's panic.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_cancelled) => Err(Overload::Stopping),
    }
}
