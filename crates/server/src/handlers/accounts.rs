//! `/v1/accounts`: making an account, changing its password.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{ClientId, Login, Password};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use protocol::{AccountRequest, AccountResponse, ErrorCode, PasswordRequest};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, blocking};
use crate::clock;
use crate::error::Refusal;
use crate::extract::{Bearer, Encoding, Form, Peer};
use crate::openapi::{BODY, refusals};
use crate::respond::Reply;

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(add)).routes(routes!(change_password))
}

refusals!(AddRefusals: BODY, [
    AccountExists, Busy, InvalidLogin, InvalidPassword, RegistrationClosed, TooManyAttempts
]);

/// Makes an account and its vault.
///
/// Where registration is closed, the operator's token is needed.
#[utoipa::path(
    post, path = "/v1/accounts", tag = "accounts", operation_id = "addAccount",
    security((), ("adminToken" = [])),
    request_body = AccountRequest,
    responses((status = 201, description = "the account", body = AccountResponse), AddRefusals),
)]
async fn add(
    State(app): State<Arc<App>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    encoding: Encoding,
    bearer: Bearer,
    Form(request): Form<AccountRequest>,
) -> Result<Reply, Refusal> {
    check_registration(&app, &bearer, address).await?;
    let (login, password) = (Login::parse(&request.login)?, Password::parse(request.password)?);
    let added = app.hash_new(address, move |app| {
        let unlocked = app.accounts.add(&login, &password, clock::now_ms())?;
        if let Err(error) = app.vaults.open(&unlocked) {
            // A refused request leaves no account behind.
            app.accounts.remove(&login)?;
            return Err(error.into());
        }
        app.logins.note(&login, address);
        Ok::<_, Refusal>(login.as_str().to_owned())
    });
    Ok(Reply::created(encoding, &AccountResponse { login: added.await?? }))
}

/// Where registration is open, anybody may make a few accounts, and the operator any number.
async fn check_registration(app: &App, bearer: &Bearer, address: IpAddr) -> Result<(), Refusal> {
    let token = bearer.text().filter(|_| app.config.admin_token.is_some());
    let is_operator = match token {
        Some(token) => app.is_operator(token, address).await?,
        None => false,
    };
    if is_operator {
        return Ok(());
    }
    if !app.config.registration_open {
        return Err(Refusal::of(ErrorCode::RegistrationClosed));
    }
    Ok(app.logins.begin_registration(address)?)
}

refusals!(ChangePasswordRefusals: BODY, [
    Busy, InvalidLogin, InvalidPassword, InvalidToken, TooManyAttempts, WrongPassword
]);

/// Sets another password. Devices stay registered, unless `revoke_others` ends them: all but the one
/// whose token comes with the request, if any does.
#[utoipa::path(
    put, path = "/v1/accounts/password", tag = "accounts", operation_id = "changePassword",
    security((), ("token" = [])),
    request_body = PasswordRequest,
    responses((status = 204, description = "changed"), ChangePasswordRefusals),
)]
async fn change_password(
    State(app): State<Arc<App>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    bearer: Bearer,
    Form(request): Form<PasswordRequest>,
) -> Result<StatusCode, Refusal> {
    let PasswordRequest { login, password, new_password, revoke_others } = request;
    let (old, new) = (Password::parse(password), Password::parse(new_password)?);
    let login = Login::parse(&login)?;
    // No account has a password that is none: to the caller it is just a wrong one.
    let old = old.or(Err(Refusal::of(ErrorCode::WrongPassword)))?;
    if revoke_others {
        let staying = staying(&app, &bearer, &login).await?;
        let unlock = move |app: &App, login: &Login, old: &Password| {
            let unlocked = app.accounts.unlock(login, old)?;
            let revoked = app.accounts.replace_password(&unlocked, &new, staying.as_ref())?;
            Ok((unlocked, revoked))
        };
        let (unlocked, revoked) = app.log_in(login, old, address, unlock).await?;
        app.listeners.revoked(unlocked.account);
        let opener = Arc::clone(&app);
        let vault = blocking(move || Ok(opener.vaults.open(&unlocked)?)).await?;
        vault.remove_clients(revoked).await?;
    } else {
        let change = move |app: &App, login: &Login, old: &Password| {
            app.accounts.change_password(login, old, &new)
        };
        app.log_in(login, old, address, change).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The device that asks, which is one of this login's.
async fn staying(
    app: &Arc<App>,
    bearer: &Bearer,
    login: &Login,
) -> Result<Option<ClientId>, Refusal> {
    if bearer.text().is_none() {
        return Ok(None);
    }
    let (token, app) = (bearer.token()?, Arc::clone(app));
    let session = blocking(move || Ok(app.accounts.authenticate(&token)?)).await?;
    if session.login == *login {
        Ok(Some(session.client_id))
    } else {
        Err(Refusal::new(ErrorCode::InvalidToken, "the token is of another account"))
    }
}
