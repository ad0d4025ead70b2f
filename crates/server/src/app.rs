//! What every handler shares: the accounts, the vaults, the settings, and where blocking work goes.
//!
//! # Invariants
//! - Async tasks never touch a file or hash a password: that runs on blocking threads, passwords on
//!   ones that everything else goes before.
//! - At one time as many sets are compared as there are cores, and as many passwords hashed but
//!   one.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use accounts::{AccountId, Accounts, Session};
use engine::Databases;
use protocol::ErrorCode;
use sync_store::{DataLock, Files, Postgres, Quota, Vaults};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

use crate::admission::connections::Connections;
use crate::admission::hosts::Hosts;
use crate::admission::logins::Logins;
use crate::admission::memory::{Holder, Memory, Room};
use crate::admission::proxies::Proxies;
use crate::admission::turns::{Applicant, Turn, Turns};
use crate::census::Census;
use crate::config::Config;
use crate::error::{Overload, Refusal, Result};
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::site::Site;
use crate::tls::Tls;

/// What is kept free on the disk of the data directory: enough for the checkpoint of a long WAL.
const RESERVE_BYTES: u64 = 16 << 20;

/// Of passwords that are hashed, as `nice` has it: a third of what other threads get where there are
/// not enough cores for all.
#[cfg(target_os = "linux")]
const PRIORITY_ASIDE: i32 = 5;

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
    pub(crate) logins: Logins,
    /// On all listeners together.
    pub(crate) connections: Connections,
    pub(crate) proxies: Proxies,
    /// Of all listeners, if they speak TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    memory: Memory,
    comparisons: Arc<Turns<AccountId>>,
    /// Last: given back when all else is closed.
    _lock: DataLock,
}

impl App {
    /// `postgres` has the vaults, if the configuration names one.
    pub(crate) fn open(config: Config, postgres: Option<Postgres>) -> Result<Self> {
        let tls = config.tls.clone().map(Tls::load).transpose()?.map(Arc::new);
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
        let (of_account, of_all) = (config.account_listeners_max, config.listeners_max());
        Ok(Self {
            listeners: Arc::new(Listeners::new(of_account, of_all)),
            metrics: Metrics::new(),
            census: Census::default(),
            maintaining: Arc::new(Semaphore::new(1)),
            site: Site::new(config.site),
            // Where there are several cores, one has none of it.
            logins: Logins::new((cores - 1).max(1)),
            connections: Connections::new(config.connections_max),
            proxies: Proxies::new(config.trusted_proxies.clone()),
            tls,
            memory: Memory::new(config.memory_bytes_max),
            comparisons: Turns::new(cores, "too many comparisons are under way"),
            config,
            accounts,
            databases,
            vaults,
            _lock: lock,
        })
    }

    /// A turn to compare sets; it ends when it is dropped.
    pub(crate) async fn comparison(&self, account: AccountId) -> Result<Turn<AccountId>, Refusal> {
        Ok(self.comparisons.take(Applicant::known(account)).await?)
    }

    /// An empty room in memory.
    pub(crate) fn room(&self, holder: Holder) -> Room {
        self.memory.room(holder)
    }

    /// Under which names a listener at this address is asked.
    pub(crate) fn hosts(&self, listen: SocketAddr) -> Arc<Hosts> {
        Arc::new(Hosts::new(&self.config.hosts, listen.ip()))
    }

    /// Refuses what stores new data in the vaults' files while the disk is full: what room there is
    /// belongs to checkpoints and deletions.
    pub(crate) fn check_disk(&self) -> Result<(), Refusal> {
        if self.is_disk_full() { Err(Refusal::of(ErrorCode::DiskFull)) } else { Ok(()) }
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self.vaults, Vaults::Files(_)) && self.databases.is_disk_full()
    }

    /// How much the vault of a device's account may hold.
    pub(crate) fn quota(&self, session: &Session) -> Quota {
        let (own, default) = (session.limits, self.config.limits);
        Quota {
            messages_max: own.messages_max.unwrap_or(default.messages_max),
            bytes_max: own.bytes_max.unwrap_or(default.bytes_max),
        }
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

/// Runs work that keeps a core busy for a moment, and that everything else goes before: on a thread
/// of its own, since no thread may take its priority back.
pub(crate) async fn aside<T, F>(work: F) -> Result<T, Overload>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (send, receive) = oneshot::channel();
    let runtime = Handle::current();
    let run = move || {
        let _entered = runtime.enter();
        // Of the thread alone.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::setpriority_process(None, PRIORITY_ASIDE) {
            tracing::debug!(%error, "lowering a thread's priority");
        }
        // Who asked may have gone.
        drop(send.send(catch_unwind(AssertUnwindSafe(work))));
    };
    let spawned = thread::Builder::new().name("aside".into()).spawn(run);
    spawned.map_err(|error| {
        tracing::warn!(%error, "starting a thread");
        Overload::Busy("too many threads are under way")
    })?;
    match receive.await {
        Ok(Ok(result)) => Ok(result),
        // Caught by the router's outermost layer, like any handler's panic.
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_stopped) => Err(Overload::Stopping),
    }
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
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_cancelled) => Err(Overload::Stopping),
    }
}
