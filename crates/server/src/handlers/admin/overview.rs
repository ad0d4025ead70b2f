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
use crate::metrics::{DURATION_BOUNDS_MS, TotalsSnapshot};

/// How the server is. What counts up does so since it was started: two answers make a rate.
#[derive(Serialize, ToSchema)]
pub(super) struct ServerOverview {
    version: &'static str,
    storage: StorageKind,
    /// The server's clock, milliseconds since 1970.
    server_time_ms: u64,
    uptime_ms: u64,
    accounts_count: u64,
    /// Devices of all accounts.
    devices_count: u64,
    vaults_count: u64,
    /// Null where vaults have no files of their own.
    files: Option<FileTotals>,
    open_vaults: OpenVaultTotals,
    readiness: Readiness,
    connections_count: u64,
    connections_max: u64,
    /// Devices that listen.
    subscribers_count: u64,
    subscribers_max: u64,
    requests_count: u64,
    /// Requests that were answered with a status of 500 or more.
    failed_requests_count: u64,
    syncs: SyncTotals,
    messages: MessageTotals,
    transactions: TransactionTotals,
    maintenance: MaintenanceTotals,
}

/// Where vaults are kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum StorageKind {
    Sqlite,
    Postgres,
}

/// The vaults' files, open or not.
#[derive(Serialize, ToSchema)]
struct FileTotals {
    count: u64,
    /// Without their WALs.
    file_bytes: u64,
    wal_bytes: u64,
    /// When those that are not open were looked at, milliseconds since 1970: where there are very
    /// many, a while ago.
    scanned_ms: u64,
}

/// The vaults' files that are open, and their memory.
#[derive(Serialize, ToSchema)]
struct OpenVaultTotals {
    count: u64,
    /// Of their pages, also of those that are in a WAL as yet.
    file_bytes: u64,
    /// Pages that hold nothing.
    free_bytes: u64,
    wal_bytes: u64,
    /// The largest share of free pages, 0 to 1.
    fragmentation_ratio_max: f64,
    wal_bytes_max: u64,
    /// Age of the oldest read that is running.
    longest_read_ms: u64,
    /// Of all page caches, also that of the accounts' file.
    cache_bytes: u64,
}

/// Requests that brought or fetched messages.
#[derive(Serialize, ToSchema)]
struct SyncTotals {
    count: u64,
    /// Bounds of durations, in milliseconds.
    bounds_ms: [f64; DURATION_BOUNDS_MS.len()],
    /// How many took no longer than each bound, but longer than the one before; the last, longer
    /// than all.
    counts: [u64; DURATION_BOUNDS_MS.len() + 1],
}

#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct MessageTotals {
    /// Came, and were new.
    stored_count: u64,
    /// Came, and were there already.
    known_count: u64,
    /// Left.
    sent_count: u64,
}

/// Of all files, also the accounts'.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct TransactionTotals {
    committed_count: u64,
    failed_count: u64,
    /// Not taken, because a queue was full.
    rejected_count: u64,
    /// Commits: several transactions share one.
    batches_count: u64,
    /// Times that a WAL was flushed to the disk.
    flushes_count: u64,
}

/// What maintenance has done.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct MaintenanceTotals {
    runs_count: u64,
    optimized_count: u64,
    truncated_wals_count: u64,
    returned_pages_count: u64,
    compacted_count: u64,
    /// Pages read to see whether they are damaged.
    scrubbed_pages_count: u64,
    /// Times that a file was found damaged.
    damaged_count: u64,
    /// Damaged vaults that were put aside and made anew.
    repaired_count: u64,
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
    let TotalsSnapshot { requests, failed_requests, connections, syncs, .. } = seen;
    Ok(ServerOverview {
        version: env!("CARGO_PKG_VERSION"),
        storage: match app.vaults {
            Vaults::Files(_) => StorageKind::Sqlite,
            Vaults::Postgres(_) => StorageKind::Postgres,
        },
        server_time_ms: clock::now_ms(),
        uptime_ms: u64::try_from(seen.uptime.as_millis()).unwrap_or(u64::MAX),
        accounts_count: count.accounts,
        devices_count: count.devices,
        vaults_count: count.vaults,
        files: sizes.as_ref().map(FileTotals::from_sizes),
        open_vaults: OpenVaultTotals::from_health(app, &vaults),
        readiness: Readiness::from_app(app),
        connections_count: connections,
        connections_max: app.config.connections_max as u64,
        subscribers_count: app.subscribers.count() as u64,
        subscribers_max: app.config.subscribers_max() as u64,
        requests_count: requests,
        failed_requests_count: failed_requests,
        syncs: SyncTotals {
            count: syncs.iter().sum(),
            bounds_ms: DURATION_BOUNDS_MS,
            counts: syncs,
        },
        messages: MessageTotals {
            stored_count: seen.stored,
            known_count: seen.known,
            sent_count: seen.sent,
        },
        transactions: app.databases.totals().into(),
        maintenance: app.databases.maintenance().into(),
    })
}

impl FileTotals {
    fn from_sizes(sizes: &VaultSizes) -> Self {
        let VaultFileSizes { file_bytes, wal_bytes, .. } = sizes.sum();
        let (count, scanned_ms) = (sizes.count() as u64, sizes.at_ms());
        Self { count, file_bytes, wal_bytes, scanned_ms }
    }
}

impl OpenVaultTotals {
    fn from_health(app: &AppState, vaults: &HashMap<VaultId, DatabaseHealth>) -> Self {
        let sum = |of: fn(&DatabaseHealth) -> u64| vaults.values().map(of).sum();
        let max =
            |of: fn(&DatabaseHealth) -> u64| vaults.values().map(of).max().unwrap_or_default();
        Self {
            count: vaults.len() as u64,
            file_bytes: sum(|health| health.pages * health.page_bytes),
            free_bytes: sum(|health| health.free_pages * health.page_bytes),
            wal_bytes: sum(|health| health.wal_bytes),
            fragmentation_ratio_max: vaults
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
        Self {
            committed_count: transactions,
            failed_count: failed,
            rejected_count: refused,
            batches_count: batches,
            flushes_count: flushes,
        }
    }
}

impl From<MaintenanceStats> for MaintenanceTotals {
    fn from(done: MaintenanceStats) -> Self {
        let MaintenanceStats {
            runs,
            optimized,
            truncated: wals_truncated,
            pages_returned,
            compacted,
            pages_scrubbed,
            damaged,
            repaired,
        } = done;
        Self {
            runs_count: runs,
            optimized_count: optimized,
            truncated_wals_count: wals_truncated,
            returned_pages_count: pages_returned,
            compacted_count: compacted,
            scrubbed_pages_count: pages_scrubbed,
            damaged_count: damaged,
            repaired_count: repaired,
        }
    }
}
