//! `GET /v1/admin/overview`: the state of the server in numbers.

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
use crate::mail_totals::MailTotals;
use crate::metrics::readiness::Readiness;
use crate::metrics::vault_sizes::VaultSizes;
use crate::metrics::{DURATION_BOUNDS_MS, TotalsSnapshot};

/// The state of the server. Counters start at 0 when the server starts; two responses give a rate.
#[derive(Serialize, ToSchema)]
pub(super) struct ServerOverview {
    version: &'static str,
    storage: StorageKind,
    /// The server's clock, milliseconds since 1970.
    server_time_ms: u64,
    uptime_ms: u64,
    accounts_count: u64,
    /// The number of devices of all accounts.
    devices_count: u64,
    vaults_count: u64,
    /// The vaults' files; null if vaults are not stored in files.
    files: Option<FileTotals>,
    open_vaults: OpenVaultTotals,
    readiness: Readiness,
    connections_count: u64,
    connections_max: u64,
    /// The number of open event streams.
    subscribers_count: u64,
    subscribers_max: u64,
    requests_count: u64,
    /// The number of requests that were answered with a status of 500 or higher.
    failed_requests_count: u64,
    syncs: SyncTotals,
    messages: MessageTotals,
    transactions: TransactionTotals,
    maintenance: MaintenanceTotals,
    /// The state of mail; null if the server receives none.
    mail: Option<MailTotals>,
}

/// The storage of the vaults.
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
    /// The size of the files without their WALs.
    file_bytes: u64,
    wal_bytes: u64,
    /// The time at which closed files were last measured, milliseconds since 1970; with very many
    /// files, this can be a while ago.
    scanned_ms: u64,
}

/// The open vaults' files and their memory.
#[derive(Serialize, ToSchema)]
struct OpenVaultTotals {
    count: u64,
    /// The size of all pages, including those that are still in a WAL.
    file_bytes: u64,
    /// The size of the free pages.
    free_bytes: u64,
    wal_bytes: u64,
    /// The largest share of free pages, 0 to 1.
    fragmentation_ratio_max: f64,
    wal_bytes_max: u64,
    /// The age of the oldest running read.
    longest_read_ms: u64,
    /// The size of all page caches, including that of the accounts file.
    cache_bytes: u64,
}

/// Requests that pushed or pulled messages.
#[derive(Serialize, ToSchema)]
struct SyncTotals {
    count: u64,
    /// Upper bounds of the durations, in milliseconds.
    bounds_ms: [f64; DURATION_BOUNDS_MS.len()],
    /// The number of requests per interval between two bounds; the last is the number above all
    /// bounds.
    counts: [u64; DURATION_BOUNDS_MS.len() + 1],
}

#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct MessageTotals {
    /// The number of received messages that were new.
    stored_count: u64,
    /// The number of received messages that were already known.
    known_count: u64,
    /// The number of sent messages.
    sent_count: u64,
}

/// Transactions of all files, including the accounts file.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct TransactionTotals {
    committed_count: u64,
    failed_count: u64,
    /// The number of transactions rejected because a queue was full.
    rejected_count: u64,
    /// The number of commits; several transactions can share one.
    batches_count: u64,
    /// The number of times that a WAL was flushed to the disk.
    flushes_count: u64,
}

/// The maintenance since the server was started.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "these are JSON keys, and counts end so")]
struct MaintenanceTotals {
    runs_count: u64,
    optimized_count: u64,
    truncated_wals_count: u64,
    returned_pages_count: u64,
    compacted_count: u64,
    /// The number of pages that were checked for damage.
    scrubbed_pages_count: u64,
    /// The number of times that a file was found damaged.
    damaged_count: u64,
    /// The number of damaged vaults that were quarantined and rebuilt.
    repaired_count: u64,
}

error_responses!(OverviewErrors: OPERATOR, []);

/// Returns the state of the server in numbers.
#[utoipa::path(
    get, path = "/v1/admin/overview", tag = "admin", operation_id = "adminOverview",
    security(("adminToken" = [])),
    responses((status = 200, description = "The current state", body = ServerOverview), OverviewErrors),
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
        mail: app.mail_totals(),
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
