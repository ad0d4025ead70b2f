//! Handles `/account`: passwords, logins, and what apps can query about them.

use std::sync::Arc;

use accounts::{Accounts, Password, UnlockedAccount};
use axum::extract::State;
use serde_json::{Value, json};
use server::GatewayServices;

use crate::gateway::error::ActualError;
use crate::gateway::form::FormBody;
use crate::gateway::head::RequestHead;
use crate::gateway::json_response::JsonUtf8;
use crate::gateway::session::text;
use crate::gateway::state::ActualGateway;
use crate::gateway_state::OwnerState;

/// Limits of the preferences that all apps share: their count, and the bytes of their names and
/// texts. Each validation of a token returns them all.
const PREFS_COUNT_MAX: usize = 100;
const PREFS_BYTES_MAX: usize = 64 << 10;

/// A method to log in.
#[derive(Clone, Copy)]
enum LoginMethod {
    Password,
    /// A trusted proxy adds the password.
    Header,
}

impl LoginMethod {
    fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Header => "header",
        }
    }
}

fn ok(data: &Value) -> JsonUtf8 {
    JsonUtf8(json!({"status": "ok", "data": data}))
}

impl ActualGateway {
    /// Returns the method that apps try on their own.
    fn login_method(&self) -> LoginMethod {
        if self.settings.has_header_login { LoginMethod::Header } else { LoginMethod::Password }
    }

    /// Returns the methods to log in, once there is a password. The published server does not list
    /// the header, so its web app never tries it.
    async fn methods(&self) -> Result<(bool, Value), ActualError> {
        if !self.is_bootstrapped().await? {
            return Ok((false, json!([])));
        }
        let password =
            |active| json!({"method": "password", "active": active, "displayName": "Password"});
        let header = || json!({"method": "header", "active": 1, "displayName": "Proxy"});
        Ok((
            true,
            match self.login_method() {
                LoginMethod::Password => json!([password(1)]),
                LoginMethod::Header => json!([header(), password(0)]),
            },
        ))
    }

    async fn is_bootstrapped(&self) -> Result<bool, ActualError> {
        if !self.settings.is_registration_open {
            return Ok(true);
        }
        let login = self.settings.login.clone();
        let find = move |services: &GatewayServices| services.accounts().find(&login);
        match self.services.blocking(find).await? {
            Ok(_) => Ok(true),
            Err(accounts::Error::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn needs_bootstrap(
    State(gateway): State<Arc<ActualGateway>>,
) -> Result<JsonUtf8, ActualError> {
    let (is_bootstrapped, methods) = gateway.methods().await?;
    Ok(ok(&json!({
        "bootstrapped": is_bootstrapped,
        "loginMethod": gateway.login_method().name(),
        "availableLoginMethods": methods,
        "multiuser": false,
    })))
}

pub(crate) async fn login_methods(
    State(gateway): State<Arc<ActualGateway>>,
) -> Result<JsonUtf8, ActualError> {
    let (_, methods) = gateway.methods().await?;
    Ok(JsonUtf8(json!({"status": "ok", "methods": methods})))
}

/// Reads a new password by the apps' rule: any text except the empty one.
fn password(form: &FormBody) -> Result<Password, ActualError> {
    Ok(Password::parse_any_length(form.text("password").unwrap_or_default().to_owned())?)
}

/// Reads the password that a trusted proxy adds to the logins of users whom it has authenticated.
fn password_of_proxy(head: &RequestHead) -> Result<Password, ActualError> {
    let password = text(&head.headers, "x-actual-password").ok_or(ActualError::InvalidHeader)?;
    if !head.is_proxied {
        return Err(ActualError::ProxyNotTrusted);
    }
    Ok(Password::parse_any_length(password)?)
}

/// Sets the first password.
pub(crate) async fn bootstrap(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let Some(fields) = &form.fields else { return Err(ActualError::InvalidLoginSettings) };
    let (by_password, by_openid) = (fields.contains_key("password"), fields.contains_key("openId"));
    let password = by_password.then(|| password(&form)).transpose()?;
    if !by_openid && gateway.is_bootstrapped().await? {
        return Err(ActualError::AlreadyBootstrapped);
    }
    let password = match (password, by_openid) {
        (Some(password), false) => password,
        (Some(_), true) => return Err(ActualError::MaxOneMethod),
        (None, true) => return Err(ActualError::NoOpenId),
        (None, false) => return Err(ActualError::NoAuthMethod),
    };
    gateway.services.begin_registration(head.address)?;
    let (login, now_ms) = (gateway.settings.login.clone(), gateway.services.now_ms());
    let add = move |accounts: &Accounts| accounts.add(&login, &password, now_ms);
    let unlocked: UnlockedAccount =
        gateway.services.hash_for_registration(head.address, add).await??;
    gateway.services.record_use(&unlocked.login, head.address);
    let token = gateway.log_in(&unlocked, &head.headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn login(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let password = match gateway.login_method() {
        LoginMethod::Header if form.text("loginMethod") != Some(LoginMethod::Password.name()) => {
            password_of_proxy(&head)?
        }
        _ => password(&form)?,
    };
    let login = gateway.settings.login.clone();
    let unlocked = gateway.services.log_in(login, password, head.address, Accounts::unlock).await?;
    let token = gateway.log_in(&unlocked, &head.headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn validate(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, None).await?;
    let owner = gateway.owner(&session.unlocked).await?;
    Ok(ok(&json!({
        "validated": true,
        "userName": "",
        "permission": "ADMIN",
        "userId": owner.user_id,
        "displayName": "",
        "loginMethod": "password",
        "prefs": owner.prefs,
    })))
}

/// Changes the password. All tokens become invalid except the one in this request.
pub(crate) async fn change_password(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, form.token()).await?;
    let (password, unlocked) = (password(&form)?, session.unlocked.clone());
    let replace = move |accounts: &Accounts| {
        accounts.replace_password(&unlocked, &password, Some(&session.device))
    };
    let revoked = gateway.services.hash_for_authenticated(head.address, replace).await??;
    gateway.open(&session.unlocked).await?.remove_devices(revoked).await?;
    Ok(ok(&json!({})))
}

/// Sets preferences that all of the server's apps share.
pub(crate) async fn server_prefs(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, form.token()).await?;
    let Some(Value::Object(prefs)) = form.get("prefs") else {
        return Err(ActualError::InvalidPrefs);
    };
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let prefs: Option<Vec<_>> = prefs.iter().map(text).collect();
    let prefs = prefs.ok_or(ActualError::thrown("a preference is a text"))?;
    let vault = gateway.open(&session.unlocked).await?;
    let change = move |owner: &mut OwnerState| {
        owner.prefs.extend(prefs.iter().cloned());
        let bytes: usize = owner.prefs.iter().map(|(name, text)| name.len() + text.len()).sum();
        let is_too_much = owner.prefs.len() > PREFS_COUNT_MAX || bytes > PREFS_BYTES_MAX;
        if is_too_much { Err(ActualError::TooLarge) } else { Ok(()) }
    };
    gateway.change_owner(&vault, change).await?;
    Ok(ok(&json!({})))
}
