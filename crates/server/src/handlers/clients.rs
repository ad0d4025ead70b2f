//! `/v1/clients`: registering, listing and revoking devices.
//!
//! The accounts know which devices there are; the vault knows what they are called and how far they
//! have synced.

use std::collections::HashMap;
use std::sync::Arc;

use accounts::{ClientId, Login, Password, Registered, Token, Unlocked};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use protocol::{Client, ClientList, ClientRequest, ClientResponse, ContentForm, ErrorCode};
use sync_store::{State, Vault};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, blocking};
use crate::clock;
use crate::error::Refusal;
use crate::extract::{Bearer, Device, Encoding, Form, Peer};
use crate::handlers::encryption;
use crate::openapi::{BODY, TOKEN, refusals};
use crate::respond::Reply;

/// Enough for what people call things, and bounded because it is shown in lists.
pub(crate) const NAME_CHARACTERS_MAX: usize = 200;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, register)).routes(routes!(revoke))
}

refusals!(RegisterRefusals: BODY, TOKEN, [
    InvalidLogin, InvalidName, QuotaExceeded, TooManyAttempts, WrongPassword
]);

/// Registers a device, by login and password, or by the token of a device of the same account.
///
/// A device that a token registered is revoked together with the token's own device.
#[utoipa::path(
    post, path = "/v1/clients", tag = "clients", operation_id = "registerClient",
    security((), ("token" = [])),
    request_body = ClientRequest,
    responses((status = 201, description = "the device and its token", body = ClientResponse), RegisterRefusals),
)]
async fn register(
    Shared(app): Shared<Arc<App>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    encoding: Encoding,
    bearer: Bearer,
    Form(request): Form<ClientRequest>,
) -> Result<Reply, Refusal> {
    let ClientRequest { login, password, name } = request;
    if name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(Refusal::of(ErrorCode::InvalidName));
    }
    let (registered, vault, form) = if login.is_empty() && password.is_empty() {
        let token = bearer.token()?;
        let app = Arc::clone(&app);
        blocking(move || register_by_token(&app, &token)).await?
    } else {
        let login = Login::parse(&login)?;
        // No account has a password that is none: to the caller it is just a wrong one.
        let password = Password::parse(password);
        let password = password.or(Err(Refusal::of(ErrorCode::WrongPassword)))?;
        let unlocked = app.log_in(login, password, address, App::unlock).await?;
        let app = Arc::clone(&app);
        // Removed since it was unlocked.
        let gone = ErrorCode::WrongPassword;
        blocking(move || register_unlocked(&app, &unlocked, None, gone)).await?
    };
    // The row in the vault comes second: without it the device has no name, without the other it
    // has no access.
    let id = registered.client_id.clone();
    let (cursor, unsent, seen_ms, created_ms) = (0, 0, 0, clock::now_ms());
    vault
        .add_client(sync_store::Client {
            id,
            name,
            node: None,
            cursor,
            unsent,
            seen_ms,
            created_ms,
        })
        .await?;
    let client_id = registered.client_id.as_str().to_owned();
    let token = registered.token.to_text().to_string();
    let form = form.map(ContentForm::from);
    Ok(Reply::created(encoding, &ClientResponse { client_id, token, form }))
}

/// A device, the vault with its messages, and their form.
type NewDevice = (Registered, Vault, Option<crdt::ContentForm>);

fn register_by_token(app: &App, token: &Token) -> Result<NewDevice, Refusal> {
    let session = app.accounts.authenticate(token)?;
    let unlocked = app.accounts.unlock_by_token(token)?;
    // Revoked since it was authenticated.
    let gone = ErrorCode::InvalidToken;
    register_unlocked(app, &unlocked, Some(&session.client_id), gone)
}

fn register_unlocked(
    app: &App,
    unlocked: &Unlocked,
    enrolled_by: Option<&ClientId>,
    gone: ErrorCode,
) -> Result<NewDevice, Refusal> {
    // Before there is a device that could ask for it.
    app.vaults.open(unlocked)?;
    let registered = match app.accounts.register(unlocked, enrolled_by, clock::now_ms()) {
        Err(accounts::Error::NotFound) => Err(Refusal::of(gone)),
        other => other.map_err(Refusal::from),
    }?;
    let set = app.accounts.authenticate(&registered.token)?.set;
    Ok((registered, app.vaults.open(&unlocked.messages(&set))?, set.form))
}

refusals!(ListRefusals: TOKEN, []);

/// The account's devices.
#[utoipa::path(
    get, path = "/v1/clients", tag = "clients", operation_id = "listClients",
    security(("token" = [])),
    responses((status = 200, description = "in order of registration", body = ClientList), ListRefusals),
)]
async fn list(
    Shared(app): Shared<Arc<App>>,
    encoding: Encoding,
    device: Device,
) -> Result<Reply, Refusal> {
    // The state second: no device has fetched more than there is.
    let known = encryption::clients(&app, &device).await?;
    let Device { session, vault, .. } = device;
    let State { cursor, fingerprint, .. } = vault.state().await?;
    let mut known_by_id: HashMap<_, _> = known.into_iter().map(|c| (c.id.clone(), c)).collect();
    let rows = blocking(move || Ok(app.accounts.clients(session.account)?)).await?;
    let clients = rows.into_iter().map(|row| {
        // A device whose registration has not come as far as the vault has done nothing yet.
        let known = known_by_id.remove(&row.client_id);
        let of_cursor = known.as_ref().map_or(0, |known| known.cursor);
        Client {
            current: row.client_id == session.client_id,
            client_id: row.client_id.as_str().to_owned(),
            created_ms: row.created_ms,
            enrolled_by: row.enrolled_by.map(|id| id.to_string()).unwrap_or_default(),
            behind: cursor.saturating_sub(of_cursor),
            ..known.map(to_wire).unwrap_or_default()
        }
    });
    let (clients, fingerprint) = (clients.collect(), Some(fingerprint.into()));
    Ok(Reply::ok(encoding, &ClientList { clients, cursor, fingerprint, now_ms: clock::now_ms() }))
}

/// What the vault knows of a device.
fn to_wire(known: sync_store::Client) -> Client {
    Client {
        name: known.name,
        cursor: known.cursor,
        seen_ms: known.seen_ms,
        node: known.node.map(|node| node.to_string()).unwrap_or_default(),
        unsent: known.unsent,
        ..Client::default()
    }
}

refusals!(RevokeRefusals: TOKEN, [NotFound]);

/// Revokes a device of the account, and every device that it registered.
#[utoipa::path(
    delete, path = "/v1/clients/{id}", tag = "clients", operation_id = "revokeClient",
    security(("token" = [])),
    params(("id" = String, Path, description = "16 hex digits", pattern = "^[0-9a-f]{16}$")),
    responses((status = 204, description = "revoked"), RevokeRefusals),
)]
async fn revoke(
    Shared(app): Shared<Arc<App>>,
    device: Device,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    // What is no text is no device's name.
    let Ok(Path(id)) = id else { return Err(Refusal::of(ErrorCode::NotFound)) };
    let account = device.session.account;
    let listeners = Arc::clone(&app.listeners);
    let revoke = move || Ok(app.accounts.revoke(account, &id.parse()?)?);
    let revoked = blocking(revoke).await?;
    listeners.revoked(account);
    device.vault.remove_clients(revoked).await?;
    Ok(StatusCode::NO_CONTENT)
}
