//! The state that all handlers share: the accounts, the vaults, the settings and permits for
//! blocking work.
//!
//! # Invariants
//! - Async tasks never access a file or hash a password: blocking threads do, and threads that
//!   hash passwords have a low priority.
//! - The number of set comparisons that run at the same time is at most the number of cores; that
//!   of password hashes is one less (at least 1).

mod logins;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread;

use accounts::{AccountId, Accounts, DeviceSession, VaultId};
use engine::{DatabaseHealth, Databases};
use protocol::ErrorCode;
use sync_store::{DataDirLock, PostgresDatabase, Quota, VaultFiles, Vaults};
use tokio::sync::Semaphore;

use crate::admission::connections::ConnectionLimiter;
use crate::admission::fair_semaphore::permit_request::PermitRequest;
use crate::admission::fair_semaphore::{FairPermit, FairSemaphore};
use crate::admission::hosts::AllowedHosts;
use crate::admission::logins::LoginAdmission;
use crate::admission::memory::{MemoryBudget, MemoryOwner, MemoryReservation};
use crate::admission::proxies::TrustedProxies;
use crate::config::Config;
use crate::error::{ApiError, Result};
use crate::http::site::StaticSite;
use crate::http::tls::TlsReloader;
use crate::mail_totals::{MailTotals, MailTotalsReader};
use crate::metrics::Metrics;
use crate::metrics::vault_sizes::VaultSizeCache;
use crate::subscribers::Subscribers;

/// The disk space that stays reserved in the data directory: enough for the checkpoint of a long
/// WAL.
const RESERVE_BYTES: u64 = 16 << 20;

pub(crate) struct AppState {
    pub(crate) config: Config,
    pub(crate) accounts: Accounts,
    pub(crate) databases: Arc<Databases>,
    pub(crate) vaults: Vaults,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) metrics: Metrics,
    pub(crate) vault_sizes: VaultSizeCache,
    /// The only permit for maintenance that the operator starts.
    pub(crate) maintenance_permits: Arc<Semaphore>,
    pub(crate) site: StaticSite,
    pub(crate) logins: LoginAdmission,
    /// The connections of all listeners together.
    pub(crate) connections: ConnectionLimiter,
    pub(crate) proxies: TrustedProxies,
    /// The certificate of all listeners, if they speak TLS.
    pub(crate) tls: Option<Arc<TlsReloader>>,
    memory: MemoryBudget,
    reconcile_permits: Arc<FairSemaphore<AccountId>>,
    /// Reads the state of the mail server in this process, if there is one.
    pub(crate) mail: OnceLock<MailTotalsReader>,
    /// The lock of the data directory. It is the last field, so it is released after all others
    /// are closed.
    _lock: DataDirLock,
}

impl AppState {
    /// Opens the data directory. The vaults are in `postgres` if the configuration names such a
    /// database.
    pub(crate) fn open(config: Config, postgres: Option<PostgresDatabase>) -> Result<Self> {
        let tls = config.tls.clone().map(TlsReloader::load).transpose()?.map(Arc::new);
        let lock = DataDirLock::acquire(&config.data, "warren serve")?;
        let databases = Arc::new(Databases::start(config.databases)?);
        databases.reserve_disk_space(config.data.join("disk-reserve"), RESERVE_BYTES)?;
        let accounts = Accounts::open(&databases, &config.data, config.kdf)?;
        let accounts = accounts.with_devices_max(config.limits.devices_max);
        let files = || {
            let files = VaultFiles::new(Arc::clone(&databases), config.data.clone());
            files.with_repair(config.repair_gateway_state)
        };
        let vaults = postgres.map_or_else(|| Vaults::Files(files()), Vaults::Postgres);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (of_account, of_all) = (config.account_subscribers_max, config.subscribers_max());
        Ok(Self {
            subscribers: Arc::new(Subscribers::new(of_account, of_all)),
            metrics: Metrics::new(),
            vault_sizes: VaultSizeCache::default(),
            maintenance_permits: Arc::new(Semaphore::new(1)),
            site: StaticSite::new(config.site),
            // Hashes leave one core free if there are several.
            logins: LoginAdmission::new((cores - 1).max(1)),
            connections: ConnectionLimiter::new(config.connections_max),
            proxies: TrustedProxies::new(config.trusted_proxies.clone()),
            tls,
            memory: MemoryBudget::new(config.memory_bytes_max),
            reconcile_permits: FairSemaphore::new(cores, "too many comparisons are in progress"),
            mail: OnceLock::new(),
            config,
            accounts,
            databases,
            vaults,
            _lock: lock,
        })
    }

    /// Reads the state of mail, if this process receives mail. Blocks.
    pub(crate) fn mail_totals(&self) -> Option<MailTotals> {
        let read = self.mail.get()?();
        read.inspect_err(|error| tracing::error!("cannot read the state of mail: {error}")).ok()
    }

    /// Waits for a permit to compare sets of messages. Dropping the permit releases it.
    pub(crate) async fn reconcile_permit(
        &self,
        account: AccountId,
    ) -> Result<FairPermit<AccountId>, ApiError> {
        Ok(self.reconcile_permits.acquire(PermitRequest::known(account)).await?)
    }

    /// Creates a memory reservation of no bytes.
    pub(crate) fn memory_reservation(&self, holder: MemoryOwner) -> MemoryReservation {
        self.memory.reservation(holder)
    }

    /// Returns the host names under which a listener at this address answers.
    pub(crate) fn hosts(&self, listen: SocketAddr) -> Arc<AllowedHosts> {
        Arc::new(AllowedHosts::new(&self.config.hosts, listen.ip()))
    }

    /// Refuses writes of new data to the vaults' files while the disk is full: the remaining space
    /// is for checkpoints and deletions.
    pub(crate) fn check_disk(&self) -> Result<(), ApiError> {
        if self.is_disk_full() {
            Err(ApiError::from_code(ErrorCode::ServerDiskFull))
        } else {
            Ok(())
        }
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self.vaults, Vaults::Files(_)) && self.databases.is_disk_full()
    }

    /// Returns the health of each open vault's file.
    pub(crate) fn open_vaults(&self) -> HashMap<VaultId, DatabaseHealth> {
        let files = self.databases.health().into_iter();
        files.filter_map(|(path, health)| Some((VaultId::from_path(&path)?, health))).collect()
    }

    /// Returns the quota of a device's account.
    pub(crate) fn quota(&self, session: &DeviceSession) -> Quota {
        let (own, default) = (session.limits, self.config.limits);
        Quota {
            messages_max: own.messages_max.unwrap_or(default.messages_max),
            bytes_max: own.bytes_max.unwrap_or(default.bytes_max),
        }
    }
}
