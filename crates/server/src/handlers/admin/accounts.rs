//! `GET /v1/admin/accounts`: lists the accounts, one part at a time.

use std::collections::HashMap;
use std::sync::Arc;

use ::accounts::{AccountPageQuery, AccountSortBy, AccountSummary, VaultId};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use engine::DatabaseHealth;
use protocol::ErrorCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::{OperatorAuth, malformed};
use crate::http::openapi::{OPERATOR, error_responses};
use crate::metrics::vault_sizes::{self, VaultSizes};

/// The default and the maximum number of accounts in a response.
const LIMIT_DEFAULT: u64 = 50;
const LIMIT_MAX: u64 = 200;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AccountListQuery {
    /// The number of accounts to skip: the `cursor` of a response. Default: 0.
    #[serde(default)]
    cursor: u64,
    /// The maximum number of accounts in the response.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u64>,
    /// Return only accounts whose login contains this text, ignoring case.
    #[serde(default)]
    search: String,
    /// The sort key; equal entries are sorted by login.
    #[param(inline)]
    #[serde(default)]
    sort: AccountSortKey,
    /// Whether to sort in descending order.
    #[serde(default)]
    descending: bool,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AccountSortKey {
    #[default]
    Login,
    Created,
    Devices,
    /// The size of the vaults' files. In PostgreSQL all accounts are equal.
    FileBytes,
}

/// A part of the list of accounts.
#[derive(Serialize, ToSchema)]
pub(super) struct AccountList {
    accounts: Vec<AccountListEntry>,
    /// The number of accounts that match the search.
    total_count: u64,
    /// The start of the next part.
    cursor: u64,
    /// Whether more accounts follow.
    more: bool,
}

/// An account in the list.
#[derive(Serialize, ToSchema)]
struct AccountListEntry {
    login: String,
    /// The time of creation, milliseconds since 1970.
    created_ms: u64,
    /// The number of devices.
    devices_count: u64,
    /// The number of vaults: the account's own vault and its sub-vaults, such as those of budgets.
    vaults_count: u64,
    open_vaults_count: u64,
    /// The size of the vaults' files without their WALs; null if vaults are not stored in files.
    file_bytes: Option<u64>,
    wal_bytes: Option<u64>,
    /// The share of free pages in the open vaults, 0 to 1; null if no vault is open.
    fragmentation_ratio: Option<f64>,
    /// The last sync of any device, milliseconds since 1970; null if the account's own vault is not
    /// open or no device ever synced.
    last_seen_ms: Option<u64>,
    /// The last change of any of its files, milliseconds since 1970.
    last_changed_ms: Option<u64>,
    /// The account's own limits; null means the server's default.
    limits: AccountLimitsView,
}

#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "what is called so everywhere else")]
struct AccountLimitsView {
    messages_max: Option<u64>,
    bytes_max: Option<u64>,
    devices_max: Option<u32>,
    mail_bytes_max: Option<u64>,
}

error_responses!(ListAccountsErrors: OPERATOR, [TooLarge]);

/// Lists the accounts, one part at a time.
#[utoipa::path(
    get, path = "/v1/admin/accounts", tag = "admin", operation_id = "adminAccounts",
    security(("adminToken" = [])),
    params(AccountListQuery),
    responses((status = 200, description = "The accounts in the requested order", body = AccountList), ListAccountsErrors),
)]
pub(super) async fn list(
    State(app): State<Arc<AppState>>,
    OperatorAuth: OperatorAuth,
    query: Result<Query<AccountListQuery>, QueryRejection>,
) -> Result<Json<AccountList>, ApiError> {
    let Query(query) = query.map_err(|error| malformed(&error))?;
    let limit = match query.limit.unwrap_or(LIMIT_DEFAULT) {
        0 => return Err(ApiError::new(ErrorCode::Malformed, "limit must be at least 1")),
        limit if limit > LIMIT_MAX => {
            let message = format!("limit must be at most {LIMIT_MAX}");
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        limit => limit,
    };
    let of_app = Arc::clone(&app);
    let (mut list, vaults) = blocking(move || account_page(&of_app, query, limit)).await?;
    for (account, vault) in list.accounts.iter_mut().zip(vaults) {
        let Some(vault) = app.vaults.get_open(&vault) else { continue };
        // If a vault closes or is damaged in the meantime, the list is still returned.
        let devices = vault.devices().await.unwrap_or_default();
        account.last_seen_ms =
            devices.iter().map(|device| device.last_seen_ms).max().filter(|&ms| ms > 0);
    }
    Ok(Json(list))
}

/// Returns a part of the list, and each account's own vault.
fn account_page(
    app: &AppState,
    query: AccountListQuery,
    limit: u64,
) -> Result<(AccountList, Vec<VaultId>), ApiError> {
    let AccountListQuery { cursor, search, sort, descending, .. } = query;
    let open = app.open_vaults();
    let sizes = app.vault_sizes.sizes(&app.vaults, open.keys())?;
    let selection = AccountPageQuery {
        search: search.to_lowercase(),
        is_descending: descending,
        offset: cursor,
        count_max: limit,
    };
    let bytes = |vault: &VaultId| {
        let sizes = sizes.as_ref().and_then(|sizes| sizes.get(vault));
        sizes.map_or(0, |sizes| sizes.file_bytes)
    };
    let found = match sort {
        AccountSortKey::Login => app.accounts.list_page(&selection, AccountSortBy::Login),
        AccountSortKey::Created => app.accounts.list_page(&selection, AccountSortBy::Created),
        AccountSortKey::Devices => app.accounts.list_page(&selection, AccountSortBy::Devices),
        AccountSortKey::FileBytes => app.accounts.list_page_by_size(&selection, bytes),
    }?;
    let total_count = app.accounts.count_matching(&selection.search)?;
    let cursor = cursor.saturating_add(found.len() as u64);
    let vaults = found.iter().map(|account| account.vault.clone()).collect();
    let accounts = found.into_iter().map(|found| account(app, sizes.as_ref(), &open, found));
    let accounts = accounts.collect::<Result<_, ApiError>>()?;
    Ok((AccountList { accounts, total_count, cursor, more: cursor < total_count }, vaults))
}

fn account(
    app: &AppState,
    sizes: Option<&VaultSizes>,
    open: &HashMap<VaultId, DatabaseHealth>,
    found: AccountSummary,
) -> Result<AccountListEntry, ApiError> {
    let mut vaults = app.accounts.sub_vaults(found.account)?;
    vaults.push(found.vault);
    let sizes = sizes.map(|sizes| {
        // A vault that was created and closed since the last scan is read now.
        let of_vault = |vault| sizes.get(vault).or_else(|| app.vaults.file_sizes(vault));
        let of_vaults: Vec<_> = vaults.iter().filter_map(of_vault).collect();
        vault_sizes::sum(of_vaults.iter())
    });
    let open: Vec<_> = vaults.iter().filter_map(|vault| open.get(vault)).collect();
    let sum =
        |of: fn(&DatabaseHealth) -> u64| -> u64 { open.iter().map(|health| of(health)).sum() };
    let limits = found.limits;
    Ok(AccountListEntry {
        login: found.login.as_str().to_owned(),
        created_ms: found.created_ms,
        devices_count: found.devices_count,
        vaults_count: vaults.len() as u64,
        open_vaults_count: open.len() as u64,
        file_bytes: sizes.map(|sizes| sizes.file_bytes),
        wal_bytes: sizes.map(|sizes| sizes.wal_bytes),
        fragmentation_ratio: (!open.is_empty())
            .then(|| share(sum(|health| health.free_pages), sum(|health| health.pages))),
        last_seen_ms: None,
        last_changed_ms: sizes.map(|sizes| sizes.changed_ms).filter(|&ms| ms > 0),
        limits: AccountLimitsView {
            messages_max: limits.messages_max,
            bytes_max: limits.bytes_max,
            devices_max: limits.devices_max,
            mail_bytes_max: limits.mail_bytes_max,
        },
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of pages stay far below 2⁵³")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
