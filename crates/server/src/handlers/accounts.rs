//! `/v1/accounts`: creates accounts and changes their passwords.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{DeviceId, Login, Password};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use engine::clock;
use protocol::{AccountRequest, AccountResponse, ErrorCode, PasswordRequest};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::{BearerToken, BodyEncoding, RequestBody};
use crate::http::openapi::{BODY, error_responses};
use crate::http::peer::RequestPeer;
use crate::http::response::ApiResponse;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(add)).routes(routes!(change_password))
}

error_responses!(AddErrors: BODY, [
    AccountExists, Busy, InvalidLogin, InvalidPassword, RegistrationClosed, TooManyAttempts
]);

/// Creates an account and its vault.
///
/// If registration is closed, the admin token is required.
#[utoipa::path(
    post, path = "/v1/accounts", tag = "accounts", operation_id = "createAccount",
    security((), ("adminToken" = [])),
    request_body = AccountRequest,
    responses((status = 201, description = "The new account", body = AccountResponse), AddErrors),
)]
async fn add(
    State(app): State<Arc<AppState>>,
    Extension(RequestPeer { address, .. }): Extension<RequestPeer>,
    encoding: BodyEncoding,
    bearer: BearerToken,
    RequestBody(request): RequestBody<AccountRequest>,
) -> Result<ApiResponse, ApiError> {
    check_registration(&app, &bearer, address).await?;
    let (login, password) = (Login::parse(&request.login)?, Password::parse(request.password)?);
    let added = app.hash_for_registration(address, move |app| {
        let unlocked = app.accounts.add(&login, &password, clock::now_ms())?;
        if let Err(error) = app.vaults.open(&unlocked) {
            // A refused request must not leave an account behind.
            app.accounts.remove(&login)?;
            return Err(error.into());
        }
        app.logins.record_use(&login, address);
        Ok::<_, ApiError>(login.as_str().to_owned())
    });
    Ok(ApiResponse::created(encoding, &AccountResponse { login: added.await?? }))
}

/// Allows anyone to create a few accounts while registration is open, and the operator any number.
async fn check_registration(
    app: &AppState,
    bearer: &BearerToken,
    address: IpAddr,
) -> Result<(), ApiError> {
    let token = bearer.text().filter(|_| app.config.admin_token.is_some());
    let is_operator = match token {
        Some(token) => app.is_operator(token, address).await?,
        None => false,
    };
    if is_operator {
        return Ok(());
    }
    if !app.config.registration_open {
        return Err(ApiError::from_code(ErrorCode::RegistrationClosed));
    }
    Ok(app.logins.begin_registration(address)?)
}

error_responses!(ChangePasswordErrors: BODY, [
    Busy, InvalidLogin, InvalidPassword, InvalidToken, TooManyAttempts, WrongPassword
]);

/// Changes the password. Devices stay registered, unless `revoke_others` is true: this revokes all
/// devices except the one whose token is sent with the request, if any.
#[utoipa::path(
    put, path = "/v1/accounts/password", tag = "accounts", operation_id = "changePassword",
    security((), ("token" = [])),
    request_body = PasswordRequest,
    responses((status = 204, description = "The password was changed"), ChangePasswordErrors),
)]
async fn change_password(
    State(app): State<Arc<AppState>>,
    Extension(RequestPeer { address, .. }): Extension<RequestPeer>,
    bearer: BearerToken,
    RequestBody(request): RequestBody<PasswordRequest>,
) -> Result<StatusCode, ApiError> {
    let PasswordRequest { login, password, new_password, revoke_others } = request;
    let (old, new) = (Password::parse(password), Password::parse(new_password)?);
    let login = Login::parse(&login)?;
    // No account has an invalid password, so to the caller it is just a wrong one.
    let old = old.or(Err(ApiError::from_code(ErrorCode::WrongPassword)))?;
    if revoke_others {
        let staying = requesting_device(&app, &bearer, &login).await?;
        let unlock = move |app: &AppState, login: &Login, old: &Password| {
            let unlocked = app.accounts.unlock(login, old)?;
            let revoked = app.accounts.replace_password(&unlocked, &new, staying.as_ref())?;
            Ok((unlocked, revoked))
        };
        let (unlocked, revoked) = app.log_in(login, old, address, unlock).await?;
        app.subscribers.notify_revoked(unlocked.account);
        let opener = Arc::clone(&app);
        let vault = blocking(move || Ok(opener.vaults.open(&unlocked)?)).await?;
        vault.remove_devices(revoked).await?;
    } else {
        let change = move |app: &AppState, login: &Login, old: &Password| {
            app.accounts.change_password(login, old, &new)
        };
        app.log_in(login, old, address, change).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the device that sends the request, if any. It must belong to this login.
async fn requesting_device(
    app: &Arc<AppState>,
    bearer: &BearerToken,
    login: &Login,
) -> Result<Option<DeviceId>, ApiError> {
    if bearer.text().is_none() {
        return Ok(None);
    }
    let (token, app) = (bearer.token()?, Arc::clone(app));
    let session = blocking(move || Ok(app.accounts.authenticate(&token)?)).await?;
    if session.login == *login {
        Ok(Some(session.device_id))
    } else {
        Err(ApiError::new(ErrorCode::InvalidToken, "the token belongs to another account"))
    }
}
