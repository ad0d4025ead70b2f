//! `GET /v1/admin/accounts`: the accounts, a part of their list at a time.

use std::collections::HashMap;
use std::sync::Arc;

use ::accounts::{AccountSummary, Order, Selection, VaultId};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use engine::Health;
use protocol::ErrorCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{OPERATOR, open_vaults};
use crate::app::{App, blocking};
use crate::census::{self, Sizes};
use crate::error::Refusal;
use crate::extract::{Operator, malformed};
use crate::openapi::refusals;

/// Accounts in an answer, unless the request says, and at most.
const LIMIT_DEFAULT: u64 = 50;
const LIMIT_MAX: u64 = 200;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Accounts of the list that are passed over: an answer's `cursor`; 0 if left out.
    #[serde(default)]
    cursor: u64,
    /// Accounts in the answer at most.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u64>,
    /// What the logins contain, whatever the case.
    #[serde(default)]
    search: String,
    /// In which order; of equals, by login.
    #[param(inline)]
    #[serde(default)]
    sort: Sort,
    /// The other way round.
    #[serde(default)]
    descending: bool,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Login,
    Created,
    Clients,
    /// By the size of the vaults' files. In PostgreSQL all are equal.
    Bytes,
}

/// A part of the list of accounts.
#[derive(Serialize, ToSchema)]
pub(super) struct AccountList {
    accounts: Vec<Account>,
    /// How many the search finds.
    total: u64,
    /// Where the next part begins.
    cursor: u64,
    /// Whether accounts follow.
    more: bool,
}

/// An account, as its operator sees it.
#[derive(Serialize, ToSchema)]
struct Account {
    login: String,
    /// Milliseconds since 1970.
    created_ms: u64,
    /// Its devices.
    clients: u64,
    /// Its vaults: its own, and those of its budgets.
    vaults: u64,
    vaults_open: u64,
    /// The vaults' files, without their WALs. Null where vaults have no files of their own.
    bytes: Option<u64>,
    wal_bytes: Option<u64>,
    /// The share of pages that hold nothing, 0 to 1, of the vaults that are open; null if none is.
    fragmentation: Option<f64>,
    /// When one of its devices last synced, milliseconds since 1970. Null if its own vault is not
    /// open, or none ever did.
    seen_ms: Option<u64>,
    /// When one of its files was last changed, milliseconds since 1970.
    changed_ms: Option<u64>,
    /// The account's own limits; null is the server's default.
    limits: AccountLimits,
}

#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "what is called so everywhere else")]
struct AccountLimits {
    messages_max: Option<u64>,
    bytes_max: Option<u64>,
    clients_max: Option<u32>,
}

refusals!(ListRefusals: OPERATOR, [TooLarge]);

/// The accounts, a part of their list at a time.
#[utoipa::path(
    get, path = "/v1/admin/accounts", tag = "admin", operation_id = "adminAccounts",
    security(("adminToken" = [])),
    params(ListQuery),
    responses((status = 200, description = "in the order asked for", body = AccountList), ListRefusals),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Operator: Operator,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<AccountList>, Refusal> {
    let Query(query) = query.map_err(|error| malformed(&error))?;
    let limit = match query.limit.unwrap_or(LIMIT_DEFAULT) {
        0 => return Err(Refusal::new(ErrorCode::Malformed, "limit is at least 1")),
        limit if limit > LIMIT_MAX => {
            let message = format!("an answer has at most {LIMIT_MAX} accounts");
            return Err(Refusal::new(ErrorCode::TooLarge, message));
        }
        limit => limit,
    };
    let of_app = Arc::clone(&app);
    let (mut list, vaults) = blocking(move || part(&of_app, query, limit)).await?;
    for (account, vault) in list.accounts.iter_mut().zip(vaults) {
        let Some(vault) = app.vaults.opened(&vault) else { continue };
        // One that is closed or damaged meanwhile is not worth losing the list for.
        let clients = vault.clients().await.unwrap_or_default();
        account.seen_ms = clients.iter().map(|client| client.seen_ms).max().filter(|&ms| ms > 0);
    }
    Ok(Json(list))
}

/// A part of the list, and each account's own vault.
fn part(app: &App, query: ListQuery, limit: u64) -> Result<(AccountList, Vec<VaultId>), Refusal> {
    let ListQuery { cursor, search, sort, descending, .. } = query;
    let open = open_vaults(app);
    let sizes = app.census.sizes(app, open.keys())?;
    let selection = Selection {
        search: search.to_lowercase(),
        is_descending: descending,
        offset: cursor,
        count_max: limit,
    };
    let bytes = |vault: &VaultId| {
        let sizes = sizes.as_ref().and_then(|sizes| sizes.of(vault));
        sizes.map_or(0, |sizes| sizes.file_bytes)
    };
    let found = match sort {
        Sort::Login => app.accounts.select(&selection, Order::Login),
        Sort::Created => app.accounts.select(&selection, Order::Created),
        Sort::Clients => app.accounts.select(&selection, Order::Clients),
        Sort::Bytes => app.accounts.select_by_weight(&selection, bytes),
    }?;
    let total = app.accounts.count_selected(&selection.search)?;
    let cursor = cursor.saturating_add(found.len() as u64);
    let vaults = found.iter().map(|account| account.vault.clone()).collect();
    let accounts = found.into_iter().map(|found| account(app, sizes.as_ref(), &open, found));
    let accounts = accounts.collect::<Result<_, Refusal>>()?;
    Ok((AccountList { accounts, total, cursor, more: cursor < total }, vaults))
}

fn account(
    app: &App,
    sizes: Option<&Sizes>,
    open: &HashMap<VaultId, Health>,
    found: AccountSummary,
) -> Result<Account, Refusal> {
    let mut vaults = app.accounts.children(found.account)?;
    vaults.push(found.vault);
    let sizes = sizes.map(|sizes| {
        // One that was made and closed since the last look is looked at.
        let of_vault = |vault| sizes.of(vault).or_else(|| app.vaults.sizes_of(vault));
        let of_vaults: Vec<_> = vaults.iter().filter_map(of_vault).collect();
        census::sum(of_vaults.iter())
    });
    let open: Vec<_> = vaults.iter().filter_map(|vault| open.get(vault)).collect();
    let sum = |of: fn(&Health) -> u64| -> u64 { open.iter().map(|health| of(health)).sum() };
    let limits = found.limits;
    Ok(Account {
        login: found.login.as_str().to_owned(),
        created_ms: found.created_ms,
        clients: found.clients_count,
        vaults: vaults.len() as u64,
        vaults_open: open.len() as u64,
        bytes: sizes.map(|sizes| sizes.file_bytes),
        wal_bytes: sizes.map(|sizes| sizes.wal_bytes),
        fragmentation: (!open.is_empty())
            .then(|| share(sum(|health| health.free_pages), sum(|health| health.pages))),
        seen_ms: None,
        changed_ms: sizes.map(|sizes| sizes.changed_ms).filter(|&ms| ms > 0),
        limits: AccountLimits {
            messages_max: limits.messages_max,
            bytes_max: limits.bytes_max,
            clients_max: limits.clients_max,
        },
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of pages stay far below 2⁵³")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
