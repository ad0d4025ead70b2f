//! `/account`: the password, logins, and what the server tells of them.

use std::sync::Arc;

use accounts::{Accounts, Password, Unlocked};
use axum::extract::State;
use serde_json::{Value, json};
use server::Services;

use crate::gateway::Gate;
use crate::gateway::fault::Fault;
use crate::gateway::form::Form;
use crate::gateway::head::Head;
use crate::gateway::said::Said;
use crate::gateway::session::text;
use crate::record::Owner;

/// Preferences that all apps share, and bytes of their names and texts: they are told at each look
/// at a token.
const PREFS_COUNT_MAX: usize = 100;
const PREFS_BYTES_MAX: usize = 64 << 10;

/// A way to log in.
#[derive(Clone, Copy)]
enum Method {
    Password,
    /// A trusted proxy adds the password.
    Header,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Header => "header",
        }
    }
}

fn ok(data: &Value) -> Said {
    Said(json!({"status": "ok", "data": data}))
}

impl Gate {
    /// What apps try by themselves.
    fn login_method(&self) -> Method {
        if self.settings.has_header_login { Method::Header } else { Method::Password }
    }

    /// The ways to log in, once there is a password. The published server does not list the header,
    /// and its web app then never tries it.
    async fn methods(&self) -> Result<(bool, Value), Fault> {
        if !self.is_bootstrapped().await? {
            return Ok((false, json!([])));
        }
        let password =
            |active| json!({"method": "password", "active": active, "displayName": "Password"});
        let header = || json!({"method": "header", "active": 1, "displayName": "Proxy"});
        Ok((
            true,
            match self.login_method() {
                Method::Password => json!([password(1)]),
                Method::Header => json!([header(), password(0)]),
            },
        ))
    }

    async fn is_bootstrapped(&self) -> Result<bool, Fault> {
        if self.settings.is_closed {
            return Ok(true);
        }
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
    let (is_bootstrapped, methods) = gate.methods().await?;
    Ok(ok(&json!({
        "bootstrapped": is_bootstrapped,
        "loginMethod": gate.login_method().name(),
        "availableLoginMethods": methods,
        "multiuser": false,
    })))
}

pub(crate) async fn login_methods(State(gate): State<Arc<Gate>>) -> Result<Said, Fault> {
    let (_, methods) = gate.methods().await?;
    Ok(Said(json!({"status": "ok", "methods": methods})))
}

/// A password by the apps' rule: any text but none.
fn password(form: &Form) -> Result<Password, Fault> {
    Ok(Password::parse_any_length(form.text("password").unwrap_or_default().to_owned())?)
}

/// The password that a trusted proxy knows, and adds to the logins of those that it let in.
fn password_of_proxy(head: &Head) -> Result<Password, Fault> {
    let password = text(&head.headers, "x-actual-password").ok_or(Fault::InvalidHeader)?;
    if !head.is_proxied {
        return Err(Fault::ProxyNotTrusted);
    }
    Ok(Password::parse_any_length(password)?)
}

/// Sets the first password.
pub(crate) async fn bootstrap(
    State(gate): State<Arc<Gate>>,
    head: Head,
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
    gate.services.begin_registration(head.address)?;
    let (login, now_ms) = (gate.settings.login.clone(), gate.services.now_ms());
    let add = move |accounts: &Accounts| accounts.add(&login, &password, now_ms);
    let unlocked: Unlocked = gate.services.hash_new(head.address, add).await??;
    gate.services.note(&unlocked.login, head.address);
    let token = gate.log_in(&unlocked, &head.headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn login(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let password = match gate.login_method() {
        Method::Header if form.text("loginMethod") != Some(Method::Password.name()) => {
            password_of_proxy(&head)?
        }
        _ => password(&form)?,
    };
    let login = gate.settings.login.clone();
    let unlocked = gate.services.log_in(login, password, head.address, Accounts::unlock).await?;
    let token = gate.log_in(&unlocked, &head.headers).await?;
    Ok(ok(&json!({"token": token})))
}

pub(crate) async fn validate(State(gate): State<Arc<Gate>>, head: Head) -> Result<Said, Fault> {
    let session = gate.session(&head, None).await?;
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
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let session = gate.session(&head, form.token()).await?;
    let (password, unlocked) = (password(&form)?, session.unlocked.clone());
    let replace = move |accounts: &Accounts| {
        accounts.replace_password(&unlocked, &password, Some(&session.client))
    };
    let revoked = gate.services.hash_known(head.address, replace).await??;
    gate.open(&session.unlocked).await?.remove_clients(revoked).await?;
    Ok(ok(&json!({})))
}

/// Sets preferences that all of the server's apps share.
pub(crate) async fn server_prefs(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let session = gate.session(&head, form.token()).await?;
    let Some(Value::Object(prefs)) = form.get("prefs") else { return Err(Fault::InvalidPrefs) };
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let prefs: Option<Vec<_>> = prefs.iter().map(text).collect();
    let prefs = prefs.ok_or(Fault::thrown("a preference is a text"))?;
    let vault = gate.open(&session.unlocked).await?;
    let change = move |owner: &mut Owner| {
        owner.prefs.extend(prefs.iter().cloned());
        let bytes: usize = owner.prefs.iter().map(|(name, text)| name.len() + text.len()).sum();
        let is_too_much = owner.prefs.len() > PREFS_COUNT_MAX || bytes > PREFS_BYTES_MAX;
        if is_too_much { Err(Fault::TooLarge) } else { Ok(()) }
    };
    gate.change_owner(&vault, change).await?;
    Ok(ok(&json!({})))
}
