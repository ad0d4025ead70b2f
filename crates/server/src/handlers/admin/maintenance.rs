//! `POST /v1/admin/maintenance`: runs the maintenance of idle vaults now.
//!
//! # Invariants
//! - Only one such call runs at a time. It maintains one file after the other and starts none
//!   after [`TIME_MAX`].
//! - No vault is opened: its key is known only while it is open.

use std::sync::Arc;
use std::time::Duration;

use ::accounts::Login;
use accounts::VaultId;
use axum::Json;
use axum::extract::State;
use engine::{Database, MaintenanceRun, clock};
use protocol::ErrorCode;
use serde::{Deserialize, Serialize};
use sync_store::Vaults;
use utoipa::ToSchema;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::{JsonRequestBody, OperatorAuth};
use crate::http::openapi::{BODY, OPERATOR, error_responses};

/// The time after which no file is started: less than browsers and proxies wait for a response.
const TIME_MAX: Duration = Duration::from_secs(20);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MaintenanceRequest {
    /// Maintain only the vaults of this account. Default: those of all accounts, and the accounts
    /// file.
    #[serde(default)]
    login: Option<String>,
}

/// The result of maintenance.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct MaintenanceReport {
    /// The number of files that were maintained, including those that needed nothing.
    files_count: u64,
    /// The number of closed vaults, which only their users' keys can open; 0 in PostgreSQL.
    closed_count: u64,
    /// The number of files that were not processed in time; call again.
    remaining_count: u64,
    /// The number of files that failed; the log has the reasons.
    failed_count: u64,
    optimized_count: u64,
    truncated_wals_count: u64,
    returned_pages_count: u64,
    compacted_count: u64,
    /// The number of pages that were checked for damage.
    scrubbed_pages_count: u64,
    /// The size of the maintained files with their WALs before maintenance.
    before_bytes: u64,
    after_bytes: u64,
    duration_ms: u64,
}

error_responses!(MaintainErrors: BODY, OPERATOR, [InvalidLogin, NotFound]);

/// Runs maintenance now for the open vaults of one account or of all accounts.
#[utoipa::path(
    post, path = "/v1/admin/maintenance", tag = "admin", operation_id = "adminMaintain",
    security(("adminToken" = [])),
    request_body = MaintenanceRequest,
    responses((status = 200, description = "The result", body = MaintenanceReport), MaintainErrors),
)]
pub(super) async fn maintain(
    State(app): State<Arc<AppState>>,
    OperatorAuth: OperatorAuth,
    JsonRequestBody(request): JsonRequestBody<MaintenanceRequest>,
) -> Result<Json<MaintenanceReport>, ApiError> {
    let login = request.login.map(|login| Login::parse(&login)).transpose()?;
    let permit = Arc::clone(&app.maintenance_permits).try_acquire_owned();
    let permit =
        permit.or(Err(ApiError::new(ErrorCode::Busy, "maintenance is already running")))?;
    blocking(move || {
        let _turn = permit;
        let started = clock::now();
        let (databases, not_open) = match login {
            Some(login) => account_databases(&app, &login)?,
            None => all_databases(&app)?,
        };
        let mut report =
            MaintenanceReport { closed_count: not_open, ..MaintenanceReport::default() };
        for database in databases {
            if started.elapsed() < TIME_MAX {
                report.add(&database);
            } else {
                report.remaining_count += 1;
            }
        }
        report.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Json(report))
    })
    .await
}

/// Returns an account's open vaults, and the number of its closed ones.
fn account_databases(app: &AppState, login: &Login) -> Result<(Vec<Arc<Database>>, u64), ApiError> {
    let account = app.accounts.find(login).map_err(|error| match error {
        ::accounts::Error::NotFound => {
            ApiError::new(ErrorCode::NotFound, "no account has this login")
        }
        error => error.into(),
    })?;
    let mut vaults = app.accounts.sub_vaults(account.account)?;
    vaults.push(account.vault);
    let data = &app.config.data;
    let open: Vec<_> =
        vaults.iter().filter_map(|vault| app.databases.get_open(&vault.path(data))).collect();
    let not_open = closed_count(app, vaults.len() as u64, open.len());
    Ok((open, not_open))
}

/// Returns all open databases, and the number of closed vaults.
fn all_databases(app: &AppState) -> Result<(Vec<Arc<Database>>, u64), ApiError> {
    let open = app.databases.list_open();
    let open: Vec<_> = open.iter().filter_map(std::sync::Weak::upgrade).collect();
    let vaults =
        open.iter().filter(|database| VaultId::from_path(database.path()).is_some()).count();
    let not_open = closed_count(app, app.accounts.totals()?.vaults, vaults);
    Ok((open, not_open))
}

fn closed_count(app: &AppState, all: u64, open: usize) -> u64 {
    match app.vaults {
        Vaults::Files(_) => all.saturating_sub(open as u64),
        Vaults::Postgres(_) => 0,
    }
}

impl MaintenanceReport {
    /// Maintains a database and adds the results to the report.
    fn add(&mut self, database: &Database) {
        let bytes_before = bytes(database);
        match database.maintain() {
            Ok(done) => {
                let MaintenanceRun {
                    is_optimized,
                    pages_returned,
                    is_compacted,
                    is_truncated,
                    pages_scrubbed,
                } = done;
                self.files_count += 1;
                self.optimized_count += u64::from(is_optimized);
                self.truncated_wals_count += u64::from(is_truncated);
                self.returned_pages_count += pages_returned;
                self.compacted_count += u64::from(is_compacted);
                self.scrubbed_pages_count += pages_scrubbed;
                self.before_bytes += bytes_before;
                self.after_bytes += bytes(database);
            }
            Err(error) => {
                tracing::warn!(path = %database.path().display(), %error, "maintenance failed");
                self.failed_count += 1;
            }
        }
    }
}

/// Returns the size of the file and its WAL. A deleted file counts as 0.
fn bytes(database: &Database) -> u64 {
    let file = database.path().metadata().map_or(0, |file| file.len());
    file + database.health().wal_bytes
}
