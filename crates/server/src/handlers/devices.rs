//! `/v1/devices`: registers, lists and revokes devices.
//!
//! The accounts file lists the devices; the vault stores their names and how far they have synced.

use std::collections::HashMap;
use std::sync::Arc;

use accounts::{DeviceCredentials, DeviceId, DeviceToken, Login, Password, UnlockedAccount};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use engine::clock;
use protocol::{
    DeviceInfo, DeviceList, ErrorCode, RegisterDeviceRequest, RegisterDeviceResponse,
    WireEncryptionMode,
};
use sync_store::{Vault, VaultSummary};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::config::NAME_CHARACTERS_MAX;
use crate::error::ApiError;
use crate::handlers::encryption;
use crate::http::extract::{AuthenticatedDevice, BearerToken, BodyEncoding, RequestBody};
use crate::http::openapi::{BODY, TOKEN, error_responses};
use crate::http::peer::RequestPeer;
use crate::http::response::ApiResponse;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(list, register)).routes(routes!(revoke))
}

error_responses!(RegisterErrors: BODY, TOKEN, [
    InvalidDeviceName, InvalidLogin, QuotaExceeded, TooManyAttempts, WrongPassword
]);

/// Registers a device, by login and password, or by the token of a device of the same account.
///
/// A device that a token registered is revoked together with the token's own device.
#[utoipa::path(
    post, path = "/v1/devices", tag = "devices", operation_id = "registerDevice",
    security((), ("token" = [])),
    request_body = RegisterDeviceRequest,
    responses((status = 201, description = "The device and its token", body = RegisterDeviceResponse), RegisterErrors),
)]
async fn register(
    Shared(app): Shared<Arc<AppState>>,
    Extension(RequestPeer { address, .. }): Extension<RequestPeer>,
    encoding: BodyEncoding,
    bearer: BearerToken,
    RequestBody(request): RequestBody<RegisterDeviceRequest>,
) -> Result<ApiResponse, ApiError> {
    let RegisterDeviceRequest { login, password, name } = request;
    if name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(ApiError::from_code(ErrorCode::InvalidDeviceName));
    }
    let (registered, vault, mode) = if login.is_empty() && password.is_empty() {
        let token = bearer.token()?;
        let app = Arc::clone(&app);
        blocking(move || register_by_token(&app, &token)).await?
    } else {
        let login = Login::parse(&login)?;
        // No account has an invalid password, so to the caller it is just a wrong one.
        let password = Password::parse(password);
        let password = password.or(Err(ApiError::from_code(ErrorCode::WrongPassword)))?;
        let unlocked = app.log_in(login, password, address, AppState::unlock).await?;
        let app = Arc::clone(&app);
        // The code if the account is removed after it was unlocked.
        let gone = ErrorCode::WrongPassword;
        blocking(move || register_unlocked(&app, &unlocked, None, gone)).await?
    };
    // The row in the vault comes second: without it, the device only lacks a name; without the row
    // in the accounts file, it would lack access.
    let id = registered.device_id.clone();
    let (cursor, unsent_count, last_seen_ms, created_ms) = (0, 0, 0, clock::now_ms());
    vault
        .add_device(sync_store::VaultDevice {
            id,
            name,
            node_id: None,
            cursor,
            unsent_count,
            last_seen_ms,
            created_ms,
        })
        .await?;
    let device_id = registered.device_id.as_str().to_owned();
    let token = registered.token.to_text().to_string();
    let mode = mode.map(WireEncryptionMode::from);
    Ok(ApiResponse::created(
        encoding,
        &RegisterDeviceResponse { device_id, token, encryption: mode },
    ))
}

/// A registered device, the vault with its messages, and their encryption mode.
type DeviceRegistration = (DeviceCredentials, Vault, Option<crdt::EncryptionMode>);

fn register_by_token(app: &AppState, token: &DeviceToken) -> Result<DeviceRegistration, ApiError> {
    let session = app.accounts.authenticate(token)?;
    let unlocked = app.accounts.unlock_by_token(token)?;
    // The code if the device is revoked after it was authenticated.
    let gone = ErrorCode::InvalidToken;
    register_unlocked(app, &unlocked, Some(&session.device_id), gone)
}

fn register_unlocked(
    app: &AppState,
    unlocked: &UnlockedAccount,
    registered_by: Option<&DeviceId>,
    gone: ErrorCode,
) -> Result<DeviceRegistration, ApiError> {
    // Open the vault before a device exists that could request it.
    app.vaults.open(unlocked)?;
    let registered = match app.accounts.register(unlocked, registered_by, clock::now_ms()) {
        Err(accounts::Error::NotFound) => Err(ApiError::from_code(gone)),
        other => other.map_err(ApiError::from),
    }?;
    let set = app.accounts.authenticate(&registered.token)?.message_set;
    Ok((registered, app.vaults.open(&unlocked.message_vault(&set))?, set.encryption_mode))
}

error_responses!(ListDevicesErrors: TOKEN, []);

/// Lists the devices of the account.
#[utoipa::path(
    get, path = "/v1/devices", tag = "devices", operation_id = "listDevices",
    security(("token" = [])),
    responses((status = 200, description = "The devices in order of registration", body = DeviceList), ListDevicesErrors),
)]
async fn list(
    Shared(app): Shared<Arc<AppState>>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
) -> Result<ApiResponse, ApiError> {
    // Read the vault's summary after the devices, so that no device's cursor is past the vault's.
    let known = encryption::account_devices(&app, &device).await?;
    let AuthenticatedDevice { session, vault, .. } = device;
    let VaultSummary { cursor, fingerprint, .. } = vault.summary().await?;
    let mut known_by_id: HashMap<_, _> = known.into_iter().map(|c| (c.id.clone(), c)).collect();
    let rows = blocking(move || Ok(app.accounts.devices(session.account)?)).await?;
    let devices = rows.into_iter().map(|row| {
        // The vault does not know a device yet whose registration is still in progress.
        let known = known_by_id.remove(&row.device_id);
        let of_cursor = known.as_ref().map_or(0, |known| known.cursor);
        DeviceInfo {
            current: row.device_id == session.device_id,
            device_id: row.device_id.as_str().to_owned(),
            created_ms: row.created_ms,
            registered_by: row.registered_by.map(|id| id.to_string()).unwrap_or_default(),
            pending_download_count: cursor.saturating_sub(of_cursor),
            ..known.map(to_wire).unwrap_or_default()
        }
    });
    let (devices, fingerprint) = (devices.collect(), Some(fingerprint.into()));
    Ok(ApiResponse::ok(
        encoding,
        &DeviceList { devices, cursor, fingerprint, server_time_ms: clock::now_ms() },
    ))
}

/// Converts the vault's row of a device. The accounts file provides the other fields.
fn to_wire(known: sync_store::VaultDevice) -> DeviceInfo {
    DeviceInfo {
        name: known.name,
        cursor: known.cursor,
        last_seen_ms: known.last_seen_ms,
        node_id: known.node_id.map(|node| node.to_string()).unwrap_or_default(),
        unsent_count: known.unsent_count,
        ..DeviceInfo::default()
    }
}

error_responses!(RevokeErrors: TOKEN, [NotFound]);

/// Revokes a device of the account, and every device that it registered.
#[utoipa::path(
    delete, path = "/v1/devices/{id}", tag = "devices", operation_id = "revokeDevice",
    security(("token" = [])),
    params(("id" = String, Path, description = "The id of the device, 16 hex digits", pattern = "^[0-9a-f]{16}$")),
    responses((status = 204, description = "The device was revoked"), RevokeErrors),
)]
async fn revoke(
    Shared(app): Shared<Arc<AppState>>,
    device: AuthenticatedDevice,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    // A path that is not UTF-8 cannot be a device id.
    let Ok(Path(id)) = id else { return Err(ApiError::from_code(ErrorCode::NotFound)) };
    let account = device.session.account;
    let subscribers = Arc::clone(&app.subscribers);
    let revoke = move || Ok(app.accounts.revoke(account, &id.parse()?)?);
    let revoked = blocking(revoke).await?;
    subscribers.notify_revoked(account);
    device.vault.remove_devices(revoked).await?;
    Ok(StatusCode::NO_CONTENT)
}
