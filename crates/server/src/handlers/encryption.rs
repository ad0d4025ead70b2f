//! `/v1/sync/encrypt`, and the form of an account's messages wherever messages pass.
//!
//! # Invariants
//! - All messages of a set have one form, as far as the server can know: what a sealed set takes
//!   says that it is sealed with the account's key. Whether it is, only a device can find out.
//! - A plain push is acknowledged only if the account was still plain when it was stored, so a
//!   device that turns the account to end-to-end encryption misses nothing that was acknowledged.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use crdt::{ContentForm, Message, sealed_with};
use protocol::{EncryptRequest, ErrorCode};
use sync_store::Vault;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, blocking};
use crate::error::Refusal;
use crate::extract::{Device, Form};
use crate::openapi::{BODY, TOKEN, refusals};

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(encrypt))
}

refusals!(EncryptRefusals: BODY, TOKEN, [Behind, FormMismatch]);

/// Turns the account to end-to-end encryption, or follows a device that has.
///
/// The account gets an empty set of messages, and this device syncs with that from here on, from
/// cursor 0. The device that turns it has everything of the plain set, which takes no pushes any
/// more; one that follows need not. When every device has followed or is revoked, the plain messages
/// are removed. Asking again changes nothing.
#[utoipa::path(
    post, path = "/v1/sync/encrypt", tag = "sync", operation_id = "encrypt",
    security(("token" = [])),
    request_body = EncryptRequest,
    responses((status = 204, description = "the device is in the sealed set"), EncryptRefusals),
)]
async fn encrypt(
    State(app): State<Arc<App>>,
    device: Device,
    Form(request): Form<EncryptRequest>,
) -> Result<StatusCode, Refusal> {
    let ContentForm::Sealed(key) = form_of(&request.key_id)? else {
        return Err(Refusal::new(ErrorCode::Malformed, "key_id has 8 bytes"));
    };
    app.check_disk()?;
    let Device { session, vault, token, .. } = device;
    let begins = match session.set.form {
        None | Some(ContentForm::Plain) if request.begin => true,
        Some(form) if form == ContentForm::Sealed(key) => {
            if !session.set.is_in_plain() {
                return Ok(StatusCode::NO_CONTENT);
            }
            false
        }
        form => return Err(mismatch(form)),
    };
    let holds = request.holds.as_ref();
    let holds = holds.map(|wire| wire.to_crdt().ok_or_else(|| Refusal::of(ErrorCode::Malformed)));
    let holds = holds.transpose()?;
    if (begins || holds.is_some()) && holds != Some(vault.state().await?.fingerprint) {
        return Err(Refusal::of(ErrorCode::Behind));
    }
    let name = vault.clients().await?.into_iter().find(|client| client.id == session.client_id);
    let (opening, client) = (Arc::clone(&app), session.client_id.clone());
    let sealed = blocking(move || {
        let unlocked = opening.accounts.unlock_by_token(&token)?;
        let set = opening.accounts.encrypt(&unlocked, &client, key)?;
        let is_other = set.sealed.is_some();
        Ok(is_other.then(|| opening.vaults.open(&unlocked.messages(&set))).transpose()?)
    });
    let sealed = sealed.await?;
    if let (Some(sealed), Some(name)) = (sealed, name) {
        sealed.add_client(sync_store::Client { cursor: 0, ..name }).await?;
    }
    app.listeners.revoked(session.account);
    Ok(StatusCode::NO_CONTENT)
}

/// The form that a request names.
pub(super) fn form_of(key_id: &[u8]) -> Result<ContentForm, Refusal> {
    let form = ContentForm::from_bytes(key_id);
    form.ok_or_else(|| Refusal::new(ErrorCode::Malformed, "a key's id has 8 bytes, or none"))
}

/// Refuses what is to be stored and has another form than the account's messages, whose form it
/// is from here on if they had none.
pub(super) async fn check_before(
    app: &Arc<App>,
    device: &Device,
    form: ContentForm,
    is_empty: bool,
) -> Result<(), Refusal> {
    let (set, account) = (&device.session.set, device.session.account);
    let settled = match set.form {
        None if is_empty => return Ok(()),
        None => {
            let app = Arc::clone(app);
            blocking(move || Ok(app.accounts.settle_form(account, form)?)).await?
        }
        Some(settled) => settled,
    };
    if settled == form && !set.is_in_plain() { Ok(()) } else { Err(mismatch(Some(settled))) }
}

/// Refuses contents that do not say that they have this form, if it is a sealed one.
pub(super) fn check_contents<'a>(
    form: ContentForm,
    mut messages: impl Iterator<Item = &'a Message>,
) -> Result<(), Refusal> {
    let ContentForm::Sealed(key) = form else { return Ok(()) };
    if messages.all(|message| sealed_with(&message.content) == Some(key)) {
        return Ok(());
    }
    let message = "a content is not sealed with the key that the request names";
    Err(Refusal::new(ErrorCode::FormMismatch, message))
}

/// The same for plain messages that were stored meanwhile: of an account that has turned to
/// end-to-end encryption the device keeps them, and sends them sealed.
pub(super) async fn check_after(
    app: &Arc<App>,
    device: &Device,
    form: ContentForm,
) -> Result<(), Refusal> {
    if form != ContentForm::Plain {
        return Ok(());
    }
    let (app, account) = (Arc::clone(app), device.session.account);
    let now = blocking(move || Ok(app.accounts.form(account)?)).await?;
    if now.is_none_or(|now| now == form) { Ok(()) } else { Err(mismatch(now)) }
}

fn mismatch(form: Option<ContentForm>) -> Refusal {
    let message = match form {
        Some(ContentForm::Sealed(id)) => {
            let id = u64::from_be_bytes(id);
            format!("the account is encrypted end to end, with the key {id:016x}")
        }
        _ => "the account is not encrypted end to end".to_owned(),
    };
    Refusal::new(ErrorCode::FormMismatch, message)
}

/// What the vaults know of the account's devices. Of those that read the plain set, while this one
/// is in the sealed one, no arrival number means anything here.
pub(super) async fn clients(
    app: &Arc<App>,
    device: &Device,
) -> Result<Vec<sync_store::Client>, Refusal> {
    let mut known = device.vault.clients().await?;
    let set = &device.session.set;
    if set.keeps_plain && set.sealed.is_some() {
        let plain = open_own(app, device).await?.clients().await?;
        let others = plain.into_iter().filter(|other| known.iter().all(|one| one.id != other.id));
        let others: Vec<_> =
            others.map(|client| sync_store::Client { cursor: 0, ..client }).collect();
        known.extend(others);
    }
    Ok(known)
}

/// The account's own vault.
async fn open_own(app: &Arc<App>, device: &Device) -> Result<Vault, Refusal> {
    let (app, token, own) = (Arc::clone(app), device.token.clone(), device.session.vault.clone());
    blocking(move || {
        let key = || Ok(app.accounts.unlock_by_token(&token)?.key);
        app.vaults.open_with::<Refusal>(&own, key)
    })
    .await
}

/// Removes the plain messages of an account that has turned to end-to-end encryption, if no device
/// reads them any more.
pub(super) async fn clear_plain(app: &Arc<App>, device: &Device) -> Result<(), Refusal> {
    let (set, account) = (&device.session.set, device.session.account);
    if !set.keeps_plain || set.sealed.is_none() {
        return Ok(());
    }
    let asking = Arc::clone(app);
    if !blocking(move || Ok(asking.accounts.has_left_plain(account)?)).await? {
        return Ok(());
    }
    let plain = open_own(app, device).await?;
    // A gateway may keep a record there.
    plain.clear(Arc::new(|record, _| Ok(record.to_vec()))).await?;
    let known = plain.clients().await?.into_iter().map(|client| client.id);
    plain.remove_clients(known.collect()).await?;
    let app = Arc::clone(app);
    blocking(move || Ok(app.accounts.forget_plain(account)?)).await
}
