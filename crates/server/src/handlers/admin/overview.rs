//! `GET /v1/admin/overview`: how the server is, in numbers.

use std::collections::HashMap;
use std::sync::Arc;

use ::accounts::VaultId;
use axum::Json;
use axum::extract::State;
use engine::{Health, MaintenanceStats, Totals};
use serde::Serialize;
use sync_store::{FileSizes, Vaults};
use utoipa::ToSchema;

use super::{OPERATOR, open_vaults};
use crate::app::{App, blocking};
use crate::census::Sizes;
use crate::clock;
use crate::error::Refusal;
use crate::extract::Operator;
use crate::metrics::{DURATION_BOUNDS_S, Seen};
use crate::openapi::refusals;
use crate::readiness::Readiness;

/// How the server is. What counts up does so since it was started: two answers make a rate.
#[derive(Serialize, ToSchema)]
pub(super) struct Overview {
    version: &'static str,
    storage: Storage,
    /// The server's clock, milliseconds since 1970.
    now_ms: u64,
    uptime_ms: u64,
    accounts: u64,
    /// Devices of all accounts.
    clients: u64,
    vaults: u64,
    /// Null where vaults have no files of their own.
    files: Option<Files>,
    open: Open,
    readiness: Readiness,
    connections: u64,
    connections_max: u64,
    /// Devices that listen.
    listeners: u64,
    listeners_max: u64,
    requests: u64,
    /// Requests that were answered with a status of 500 or more.
    requests_failed: u64,
    syncs: Syncs,
    messages: Messages,
    transactions: Transactions,
    maintenance: Maintenance,
}

/// Where vaults are kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Storage {
    Sqlite,
    Postgres,
}

/// The vaults' files, open or not.
#[derive(Serialize, ToSchema)]
struct Files {
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
struct Open {
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
struct Syncs {
    count: u64,
    /// Bounds of durations, in seconds.
    bounds_s: [f64; DURATION_BOUNDS_S.len()],
    /// How many took no longer than each bound, but longer than the one before; the last, longer
    /// than all.
    counts: [u64; DURATION_BOUNDS_S.len() + 1],
}

#[derive(Serialize, ToSchema)]
struct Messages {
    /// Came, and were new.
    stored: u64,
    /// Came, and were there already.
    known: u64,
    /// Left.
    sent: u64,
}

/// Of all files, also the accounts'.
#[derive(Serialize, ToSchema)]
struct Transactions {
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
struct Maintenance {
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

refusals!(OverviewRefusals: OPERATOR, []);

/// How the server is, in numbers.
#[utoipa::path(
    get, path = "/v1/admin/overview", tag = "admin", operation_id = "adminOverview",
    security(("adminToken" = [])),
    responses((status = 200, description = "at this moment", body = Overview), OverviewRefusals),
)]
pub(super) async fn overview(
    State(app): State<Arc<App>>,
    Operator: Operator,
) -> Result<Json<Overview>, Refusal> {
    blocking(move || overview_of(&app).map(Json)).await
}

fn overview_of(app: &App) -> Result<Overview, Refusal> {
    let count = app.accounts.count()?;
    let vaults = open_vaults(app);
    let sizes = app.census.sizes(app, vaults.keys())?;
    let seen = app.metrics.totals.seen();
    let Seen { requests, requests_failed, connections, syncs, .. } = seen;
    Ok(Overview {
        version: env!("CARGO_PKG_VERSION"),
        storage: match app.vaults {
            Vaults::Files(_) => Storage::Sqlite,
            Vaults::Postgres(_) => Storage::Postgres,
        },
        now_ms: clock::now_ms(),
        uptime_ms: u64::try_from(seen.uptime.as_millis()).unwrap_or(u64::MAX),
        accounts: count.accounts,
        clients: count.clients,
        vaults: count.vaults,
        files: sizes.as_ref().map(Files::of),
        open: Open::of(app, &vaults),
        readiness: Readiness::of(app),
        connections,
        connections_max: app.config.connections_max as u64,
        listeners: app.listeners.count() as u64,
        listeners_max: app.config.listeners_max() as u64,
        requests,
        requests_failed,
        syncs: Syncs { count: syncs.iter().sum(), bounds_s: DURATION_BOUNDS_S, counts: syncs },
        messages: Messages { stored: seen.stored, known: seen.known, sent: seen.sent },
        transactions: app.databases.totals().into(),
        maintenance: app.databases.maintenance().into(),
    })
}

impl Files {
    fn of(sizes: &Sizes) -> Self {
        let FileSizes { file_bytes, wal_bytes, .. } = sizes.sum();
        let (count, looked_ms) = (sizes.count() as u64, sizes.at_ms());
        Self { count, bytes: file_bytes, wal_bytes, looked_ms }
    }
}

impl Open {
    fn of(app: &App, vaults: &HashMap<VaultId, Health>) -> Self {
        let sum = |of: fn(&Health) -> u64| vaults.values().map(of).sum();
        let max = |of: fn(&Health) -> u64| vaults.values().map(of).max().unwrap_or_default();
        Self {
            count: vaults.len() as u64,
            bytes: sum(|health| health.pages * health.page_bytes),
            free_bytes: sum(|health| health.free_pages * health.page_bytes),
            wal_bytes: sum(|health| health.wal_bytes),
            fragmentation_max: vaults.values().map(Health::fragmentation).fold(0.0, f64::max),
            wal_bytes_max: max(|health| health.wal_bytes),
            longest_read_ms: max(|health| {
                u64::try_from(health.longest_read.as_millis()).unwrap_or(u64::MAX)
            }),
            cache_bytes: app.databases.cache_bytes() as u64,
        }
    }
}

impl From<Totals> for Transactions {
    fn from(totals: Totals) -> Self {
        let Totals { transactions, failed, refused, batches, flushes } = totals;
        Self { committed: transactions, failed, refused, batches, flushes }
    }
}

impl From<MaintenanceStats> for Maintenance {
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
