//! `/v1/sync/e2ee`, and checks of the encryption mode for all requests that carry messages.
//!
//! # Invariants
//! - All messages of a set have one encryption mode, as far as the server can see: an e2ee set
//!   accepts only messages that name the account's key. Only a device can check that they are
//!   sealed with it.
//! - A plain push is acknowledged only if the account was still plain when it was stored, so a
//!   device that enables end-to-end encryption misses no acknowledged message.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use crdt::{EncryptionMode, Message, sealing_key_id};
use protocol::{EnableE2eeRequest, ErrorCode};
use sync_store::Vault;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::{AuthenticatedDevice, RequestBody};
use crate::http::openapi::{BODY, TOKEN, error_responses};

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(enable_e2ee))
}

error_responses!(EnableE2eeErrors: BODY, TOKEN, [EncryptionMismatch, StaleCursor]);

/// Enables end-to-end encryption of the account, or joins an account that has it.
///
/// The account gets an empty set of messages, which this device syncs from now on, starting at
/// cursor 0. The device that enables encryption must have all messages of the plain set, which
/// accepts no more pushes; a device that joins need not have them. The plain messages are removed
/// when every device has joined or is revoked. Repeating the request changes nothing.
#[utoipa::path(
    post, path = "/v1/sync/e2ee", tag = "sync", operation_id = "enableE2ee",
    security(("token" = [])),
    request_body = EnableE2eeRequest,
    responses((status = 204, description = "The device uses the end-to-end encrypted set"), EnableE2eeErrors),
)]
async fn enable_e2ee(
    State(app): State<Arc<AppState>>,
    device: AuthenticatedDevice,
    RequestBody(request): RequestBody<EnableE2eeRequest>,
) -> Result<StatusCode, ApiError> {
    let EncryptionMode::EndToEnd(key) = parse_encryption_mode(&request.key_id)? else {
        return Err(ApiError::new(ErrorCode::Malformed, "key_id has 8 bytes"));
    };
    app.check_disk()?;
    let AuthenticatedDevice { session, vault, token, .. } = device;
    let begins = match session.message_set.encryption_mode {
        None | Some(EncryptionMode::Plain) if request.start => true,
        Some(mode) if mode == EncryptionMode::EndToEnd(key) => {
            if !session.message_set.is_in_plain() {
                return Ok(StatusCode::NO_CONTENT);
            }
            false
        }
        mode => return Err(mismatch(mode)),
    };
    let holds = request.holds.as_ref();
    let holds =
        holds.map(|wire| wire.to_crdt().ok_or_else(|| ApiError::from_code(ErrorCode::Malformed)));
    let holds = holds.transpose()?;
    if (begins || holds.is_some()) && holds != Some(vault.summary().await?.fingerprint) {
        return Err(ApiError::from_code(ErrorCode::StaleCursor));
    }
    let name = vault.devices().await?.into_iter().find(|client| client.id == session.device_id);
    let (opening, client) = (Arc::clone(&app), session.device_id.clone());
    let sealed = blocking(move || {
        let unlocked = opening.accounts.unlock_by_token(&token)?;
        let set = opening.accounts.enable_e2ee(&unlocked, &client, key)?;
        let is_other = set.e2ee_vault.is_some();
        Ok(is_other.then(|| opening.vaults.open(&unlocked.message_vault(&set))).transpose()?)
    });
    let sealed = sealed.await?;
    if let (Some(sealed), Some(name)) = (sealed, name) {
        sealed.add_device(sync_store::VaultDevice { cursor: 0, ..name }).await?;
    }
    app.subscribers.notify_revoked(session.account);
    Ok(StatusCode::NO_CONTENT)
}

/// Parses the encryption mode that a request names.
pub(super) fn parse_encryption_mode(key_id: &[u8]) -> Result<EncryptionMode, ApiError> {
    let mode = EncryptionMode::from_bytes(key_id);
    mode.ok_or_else(|| {
        ApiError::new(ErrorCode::Malformed, "a key id must have 8 bytes or be empty")
    })
}

/// Refuses a write whose encryption mode differs from that of the account's messages. If the
/// account has no mode yet, this sets it.
pub(super) async fn check_mode_before_store(
    app: &Arc<AppState>,
    device: &AuthenticatedDevice,
    mode: EncryptionMode,
    is_empty: bool,
) -> Result<(), ApiError> {
    let (set, account) = (&device.session.message_set, device.session.account);
    let of_account = match set.encryption_mode {
        None if is_empty => return Ok(()),
        None => {
            let app = Arc::clone(app);
            blocking(move || Ok(app.accounts.fix_encryption_mode(account, mode)?)).await?
        }
        Some(of_account) => of_account,
    };
    if of_account == mode && !set.is_in_plain() { Ok(()) } else { Err(mismatch(Some(of_account))) }
}

/// Refuses contents that do not begin with the key id of this encryption mode, if it is
/// end-to-end.
pub(super) fn check_contents<'a>(
    mode: EncryptionMode,
    mut messages: impl Iterator<Item = &'a Message>,
) -> Result<(), ApiError> {
    let EncryptionMode::EndToEnd(key) = mode else { return Ok(()) };
    if messages.all(|message| sealing_key_id(&message.content) == Some(key)) {
        return Ok(());
    }
    let message = "a message is not encrypted with the key that the request names";
    Err(ApiError::new(ErrorCode::EncryptionMismatch, message))
}

/// Refuses a plain push if the account enabled end-to-end encryption while it was stored. The
/// device then keeps the messages and sends them sealed.
pub(super) async fn check_mode_after_store(
    app: &Arc<AppState>,
    device: &AuthenticatedDevice,
    mode: EncryptionMode,
) -> Result<(), ApiError> {
    if mode != EncryptionMode::Plain {
        return Ok(());
    }
    let (app, account) = (Arc::clone(app), device.session.account);
    let now = blocking(move || Ok(app.accounts.encryption_mode(account)?)).await?;
    if now.is_none_or(|now| now == mode) { Ok(()) } else { Err(mismatch(now)) }
}

fn mismatch(mode: Option<EncryptionMode>) -> ApiError {
    let message = match mode {
        Some(EncryptionMode::EndToEnd(id)) => {
            let id = u64::from_be_bytes(id);
            format!("the account is end-to-end encrypted with the key {id:016x}")
        }
        _ => "the account is not end-to-end encrypted".to_owned(),
    };
    ApiError::new(ErrorCode::EncryptionMismatch, message)
}

/// Returns the vaults' rows of the account's devices. If this device uses the e2ee set, sequence
/// numbers of devices in the plain set have no meaning, so their cursors are 0.
pub(super) async fn account_devices(
    app: &Arc<AppState>,
    device: &AuthenticatedDevice,
) -> Result<Vec<sync_store::VaultDevice>, ApiError> {
    let mut known = device.vault.devices().await?;
    let set = &device.session.message_set;
    if set.has_plaintext && set.e2ee_vault.is_some() {
        let plain = open_own(app, device).await?.devices().await?;
        let others = plain.into_iter().filter(|other| known.iter().all(|one| one.id != other.id));
        let others: Vec<_> =
            others.map(|client| sync_store::VaultDevice { cursor: 0, ..client }).collect();
        known.extend(others);
    }
    Ok(known)
}

/// Opens the account's own vault.
async fn open_own(app: &Arc<AppState>, device: &AuthenticatedDevice) -> Result<Vault, ApiError> {
    let (app, token, own) = (Arc::clone(app), device.token.clone(), device.session.vault.clone());
    blocking(move || {
        let key = || Ok(app.accounts.unlock_by_token(&token)?.key);
        app.vaults.open_with::<ApiError>(&own, key)
    })
    .await
}

/// Removes the plain messages of an account that enabled end-to-end encryption, if no device reads
/// them any more.
pub(super) async fn clear_plain(
    app: &Arc<AppState>,
    device: &AuthenticatedDevice,
) -> Result<(), ApiError> {
    let (set, account) = (&device.session.message_set, device.session.account);
    if !set.has_plaintext || set.e2ee_vault.is_none() {
        return Ok(());
    }
    let asking = Arc::clone(app);
    if !blocking(move || Ok(asking.accounts.has_unread_plaintext(account)?)).await? {
        return Ok(());
    }
    let plain = open_own(app, device).await?;
    // A gateway may keep its state there.
    plain.clear(Arc::new(|record, _| Ok(record.to_vec()))).await?;
    let known = plain.devices().await?.into_iter().map(|client| client.id);
    plain.remove_devices(known.collect()).await?;
    let app = Arc::clone(app);
    blocking(move || Ok(app.accounts.record_plaintext_removed(account)?)).await
}
