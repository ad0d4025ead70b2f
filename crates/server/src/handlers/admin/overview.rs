//! `GET /v1/admin/overview`: how the server is, in numbers.

use std::collections::HashMap;
use std::sync::Arc;

use ::accounts::VaultId;
use axum::Json;
use axum::extract::State;
use engine::{DatabaseHealth, EngineTotals, MaintenanceStats, clock};
use serde::Serialize;
use sync_store::{VaultFileSizes, Vaults};
use utoipa::ToSchema;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::OperatorAuth;
use crate::http::openapi::{OPERATOR, error_responses};
use crate::metrics::readiness::Readiness;
use crate::metrics::vault_sizes::VaultSizes;
use crate::metrics::{DURATION_BOUNDS_S, TotalsSnapshot};

/// How the server is. What counts up does so since it was started: two answers make a rate.
#[derive(Serialize, ToSchema)]
#[schema(as = Overview)]
pub(super) struct ServerOverview {
    version: &'static str,
    storage: StorageKind,
    /// The server's clock, milliseconds since 1970.
    now_ms: u64,
    uptime_ms: u64,
    accounts: u64,
    /// Devices of all accounts.
    clients: u64,
    vaults: u64,
    /// Null where vaults have no files of their own.
    files: Option<FileTotals>,
    open: OpenVaultTotals,
    readiness: Readiness,
    connections: u64,
    connections_max: u64,
    /// Devices that listen.
    listeners: u64,
    listeners_max: u64,
    requests: u64,
    /// Requests that were answered with a status of 500 or more.
    requests_failed: u64,
    syncs: SyncTotals,
    messages: MessageTotals,
    transactions: TransactionTotals,
    maintenance: MaintenanceTotals,
}

/// Where vaults are kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Storage)]
enum StorageKind {
    Sqlite,
    Postgres,
}

/// The vaults' files, open or not.
#[derive(Serialize, ToSchema)]
#[schema(as = Files)]
struct FileTotals {
    count: u64,
    /// Without their WALs.
    bytes: u64,
    wal_bytes: u64,
    /// When those that are not open were looked at, milliseconds since 1970: where there are very
    /// many, a while ago.
    looked_ms: u64,
}

/// The vaults' files that are open, and their memory.
#[derive(Serialize, ToSchema)]
#[schema(as = Open)]
struct OpenVaultTotals {
    count: u64,
    /// Of their pages, also of those that are in a WAL as yet.
    bytes: u64,
    /// Pages that hold nothing.
    free_bytes: u64,
    wal_bytes: u64,
    /// The largest share of free pages, 0 to 1.
    fragmentation_max: f64,
    wal_bytes_max: u64,
    /// Age of the oldest read that is running.
    longest_read_ms: u64,
    /// Of all page caches, also that of the accounts' file.
    cache_bytes: u64,
}

/// Requests that brought or fetched messages.
#[derive(Serialize, ToSchema)]
#[schema(as = Syncs)]
struct SyncTotals {
    count: u64,
    /// Bounds of durations, in seconds.
    bounds_s: [f64; DURATION_BOUNDS_S.len()],
    /// How many took no longer than each bound, but longer than the one before; the last, longer
    /// than all.
    counts: [u64; DURATION_BOUNDS_S.len() + 1],
}

#[derive(Serialize, ToSchema)]
#[schema(as = Messages)]
struct MessageTotals {
    /// Came, and were new.
    stored: u64,
    /// Came, and were there already.
    known: u64,
    /// Left.
    sent: u64,
}

/// Of all files, also the accounts'.
#[derive(Serialize, ToSchema)]
#[schema(as = Transactions)]
struct TransactionTotals {
    committed: u64,
    failed: u64,
    /// Not taken, because a queue was full.
    refused: u64,
    /// Commits: several transactions share one.
    batches: u64,
    /// Times that a WAL was flushed to the disk.
    flushes: u64,
}

/// What maintenance has done.
#[derive(Serialize, ToSchema)]
#[schema(as = Maintenance)]
struct MaintenanceTotals {
    runs: u64,
    optimised: u64,
    wals_truncated: u64,
    pages_returned: u64,
    compacted: u64,
    /// Pages read to see whether they are damaged.
    pages_scrubbed: u64,
    /// Times that a file was found damaged.
    damaged: u64,
    /// Damaged vaults that were put aside and made anew.
    repaired: u64,
}

error_responses!(OverviewErrors: OPERATOR, []);

/// How the server is, in numbers.
#[utoipa::path(
    get, path = "/v1/admin/overview", tag = "admin", operation_id = "adminOverview",
    security(("adminToken" = [])),
    responses((status = 200, description = "at this moment", body = ServerOverview), OverviewErrors),
)]
pub(super) async fn overview(
    State(app): State<Arc<AppState>>,
    OperatorAuth: OperatorAuth,
) -> Result<Json<ServerOverview>, ApiError> {
    blocking(move || overview_of(&app).map(Json)).await
}

fn overview_of(app: &AppState) -> Result<ServerOverview, ApiError> {
    let count = app.accounts.totals()?;
    let vaults = app.open_vaults();
    let sizes = app.vault_sizes.sizes(&app.vaults, vaults.keys())?;
    let seen = app.metrics.totals.snapshot();
    let TotalsSnapshot { requests, requests_failed, connections, syncs, .. } = seen;
    Ok(ServerOverview {
        version: env!("CARGO_PKG_VERSION"),
        storage: match app.vaults {
            Vaults::Files(_) => StorageKind::Sqlite,
            Vaults::Postgres(_) => StorageKind::Postgres,
        },
        now_ms: clock::now_ms(),
        uptime_ms: u64::try_from(seen.uptime.as_millis()).unwrap_or(u64::MAX),
        accounts: count.accounts,
        clients: count.devices,
        vaults: count.vaults,
        files: sizes.as_ref().map(FileTotals::from_sizes),
        open: OpenVaultTotals::from_health(app, &vaults),
        readiness: Readiness::from_app(app),
        connections,
        connections_max: app.config.connections_max as u64,
        listeners: app.subscribers.count() as u64,
        listeners_max: app.config.subscribers_max() as u64,
        requests,
        requests_failed,
        syncs: SyncTotals { count: syncs.iter().sum(), bounds_s: DURATION_BOUNDS_S, counts: syncs },
        messages: MessageTotals { stored: seen.stored, known: seen.known, sent: seen.sent },
        transactions: app.databases.totals().into(),
        maintenance: app.databases.maintenance().into(),
    })
}

impl FileTotals {
    fn from_sizes(sizes: &VaultSizes) -> Self {
        let VaultFileSizes { file_bytes, wal_bytes, .. } = sizes.sum();
        let (count, looked_ms) = (sizes.count() as u64, sizes.at_ms());
        Self { count, bytes: file_bytes, wal_bytes, looked_ms }
    }
}

impl OpenVaultTotals {
    fn from_health(app: &AppState, vaults: &HashMap<VaultId, DatabaseHealth>) -> Self {
        let sum = |of: fn(&DatabaseHealth) -> u64| vaults.values().map(of).sum();
        let max =
            |of: fn(&DatabaseHealth) -> u64| vaults.values().map(of).max().unwrap_or_default();
        Self {
            count: vaults.len() as u64,
            bytes: sum(|health| health.pages * health.page_bytes),
            free_bytes: sum(|health| health.free_pages * health.page_bytes),
            wal_bytes: sum(|health| health.wal_bytes),
            fragmentation_max: vaults
                .values()
                .map(DatabaseHealth::fragmentation)
                .fold(0.0, f64::max),
            wal_bytes_max: max(|health| health.wal_bytes),
            longest_read_ms: max(|health| {
                u64::try_from(health.longest_read.as_millis()).unwrap_or(u64::MAX)
            }),
            cache_bytes: app.databases.cache_bytes() as u64,
        }
    }
}

impl From<EngineTotals> for TransactionTotals {
    fn from(totals: EngineTotals) -> Self {
        let EngineTotals { transactions, failed, refused, batches, flushes } = totals;
        Self { committed: transactions, failed, refused, batches, flushes }
    }
}

impl From<MaintenanceStats> for MaintenanceTotals {
    fn from(done: MaintenanceStats) -> Self {
        let MaintenanceStats {
            runs,
            optimised,
            truncated: wals_truncated,
            pages_returned,
            compacted,
            pages_scrubbed,
            damaged,
            repaired,
        } = done;
        Self {
            runs,
            optimised,
            wals_truncated,
            pages_returned,
            compacted,
            pages_scrubbed,
            damaged,
            repaired,
        }
    }
}
