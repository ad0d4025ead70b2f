//! `/account`: the password, logins, and what the server tells of them.

use std::sync::Arc;

use accounts::{Password, Unlocked};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use server::{Address, Services};

use crate::gateway::Gate;
use crate::gateway::fault::Fault;
use crate::gateway::form::Form;
use crate::gateway::said::Said;

/// The one way to log in, once there is a password.
fn methods(is_bootstrapped: bool) -> Value {
    if is_bootstrapped {
        json!([{"method": "password", "active": 1, "displayName": "Password"}])
    } else {
        json!([])
    }
}

fn ok(data: &Value) -> Said {
    Said(json!({"status": "ok", "data": data}))
}

impl Gate {
    async fn is_bootstrapped(&self) -> Result<bool, Fault> {
        let login = self.settings.login.clone();
        let find = move |services: &Services| services.accounts().find(&login);
        match self.services.blocking(find).await? {
            Ok(_) => Ok(true),
            Err(accounts::Error::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn needs_bootstrap(State(gate): State<Arc<Gate>>) -> Result<Said, Fault> {
    let is_bootstrapped = gate.is_bootstrapped().await?;
    Ok(ok(&json!({
        "bootstrapped": is_bootstrapped,
        "loginMethod": "password",
        "availableLoginMethods": methods(is_bootstrapped),
        "multiuser": false,
    })))
}

pub(crate) async fn login_methods(State(gate): State<Arc<Gate>>) -> Result<Said, Fault> {
    Ok(Said(json!({"status": "ok", "methods": methods(gate.is_bootstrapped().await?)})))
}

/// A password by the apps' rule: any text but none.
fn password(form: &Form) -> Result<Password, Fault> {
    Ok(Password::parse_any_length(form.text("password").unwrap_or_default().to_owned())?)
}

/// Sets the first password.
pub(crate) async fn bootstrap(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Said, Fault> {
    let Some(fields) = &form.fields else { return Err(Fault::InvalidLoginSettings) };
    let (by_password, by_openid) = (fields.contains_key("password"), fields.contains_key("openId"));
    let password = by_password.then(|| password(&form)).transpose()?;
    if !by_openid && gate.is_bootstrapped().await? {
        return Err(Fault::AlreadyBootstrapped);
    }
    let password = match (password, by_openid) {
        (Some(password), false) => password,
        (Some(_), true) => return Err(Fault::MaxOneMethod),
        (None, true) => return Err(Fault::NoOpenId),
        (None, false) => return Err(Fault::NoAuthMethod),
    };
    let (login, now_ms) = (gate.settings.login.clone(), gate.services.now_ms());
    let add = move |services: &Services| services.accounts().add(&login, &password, now_ms);
    let unlocked: Unlocked = gate.services.with_password(add).await??;
    let token = gate.log_in(&unlocked, &headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn login(
    State(gate): State<Arc<Gate>>,
    Extension(Address(address)): Extension<Address>,
    headers: HeaderMap,
    form: Form,
) -> Result<Said, Fault> {
    let password = password(&form)?;
    let (login, now_ms) = (gate.settings.login.clone(), gate.services.now_ms());
    let unlock = move |services: &Services| {
        services.accounts().unlock(&login, &password, now_ms, Some(address))
    };
    let unlocked = gate.services.with_password(unlock).await??;
    let token = gate.log_in(&unlocked, &headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn validate(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<Said, Fault> {
    let session = gate.session(&headers, None).await?;
    let owner = gate.owner(&session.unlocked).await?;
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

/// Sets another password. All tokens end but the one that asks.
pub(crate) async fn change_password(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Said, Fault> {
    let session = gate.session(&headers, form.token()).await?;
    let (password, unlocked) = (password(&form)?, session.unlocked.clone());
    let replace = move |services: &Services| {
        services.accounts().replace_password(&unlocked, &password, &session.client)
    };
    let revoked = gate.services.with_password(replace).await??;
    gate.open(&session.unlocked).await?.remove_clients(revoked).await?;
    Ok(ok(&json!({})))
}

/// Sets preferences that all of the server's apps share.
pub(crate) async fn server_prefs(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Said, Fault> {
    let session = gate.session(&headers, form.token()).await?;
    let Some(Value::Object(prefs)) = form.get("prefs") else { return Err(Fault::InvalidPrefs) };
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let prefs: Option<Vec<_>> = prefs.iter().map(text).collect();
    let prefs = prefs.ok_or(Fault::thrown("a preference is a text"))?;
    let vault = gate.open(&session.unlocked).await?;
    gate.change_owner(&vault, move |owner| owner.prefs.extend(prefs.iter().cloned())).await?;
    Ok(ok(&json!({})))
}
