//! `/v1/accounts`: making an account, changing its password.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{Login, Password};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use protocol::{AccountRequest, AccountResponse, ErrorCode, PasswordRequest};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
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
    if !may_register(&app, &bearer, address)? {
        return Err(Refusal::of(ErrorCode::RegistrationClosed));
    }
    let (login, password) = (Login::parse(&request.login)?, Password::parse(request.password)?);
    let login = app.with_password(move |app| {
        let unlocked = app.accounts.add(&login, &password, clock::now_ms())?;
        if let Err(error) = app.vaults.open(&unlocked) {
            // A refused request leaves no account behind.
            app.accounts.remove(&login)?;
            return Err(error.into());
        }
        Ok(login.as_str().to_owned())
    });
    Ok(Reply::created(encoding, &AccountResponse { login: login.await? }))
}

fn may_register(app: &App, bearer: &Bearer, address: IpAddr) -> Result<bool, Refusal> {
    match bearer.text() {
        _ if app.config.registration_open => Ok(true),
        Some(token) if app.config.admin_token.is_some() => app.is_operator(token, address),
        _ => Ok(false),
    }
}

refusals!(ChangePasswordRefusals: BODY, [Busy, InvalidLogin, InvalidPassword, TooManyAttempts, WrongPassword]);

/// Sets another password. Devices stay registered.
#[utoipa::path(
    put, path = "/v1/accounts/password", tag = "accounts", operation_id = "changePassword",
    request_body = PasswordRequest,
    responses((status = 204, description = "changed"), ChangePasswordRefusals),
)]
async fn change_password(
    State(app): State<Arc<App>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    Form(request): Form<PasswordRequest>,
) -> Result<StatusCode, Refusal> {
    let PasswordRequest { login, password, new_password } = request;
    let (old, new) = (Password::parse(password), Password::parse(new_password)?);
    let login = Login::parse(&login)?;
    // No account has a password that is none: to the caller it is just a wrong one.
    let old = old.or(Err(Refusal::of(ErrorCode::WrongPassword)))?;
    app.with_password(move |app| {
        let now_ms = clock::now_ms();
        Ok(app.accounts.change_password(&login, &old, &new, now_ms, Some(address))?)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
