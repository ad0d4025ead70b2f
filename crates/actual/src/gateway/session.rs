//! Authenticates requests: tokens, logins, and the account that they belong to.
//!
//! # Invariants
//! - A token opens the account of [`GatewaySettings::login`](crate::GatewaySettings) or nothing.
//! - A token is checked at every request, so revoking takes effect at once.
//! - If an account has the maximum number of tokens, the next login succeeds and removes another
//!   token.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{DeviceId, DeviceToken, UnlockedAccount};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, HeaderValue};
use server::GatewayServices;
use sync_store::{DeviceActivity, MessageBatch, Quota, Vault, VaultDevice};
use uuid::Uuid;

use crate::gateway::error::ActualError;
use crate::gateway::head::RequestHead;
use crate::gateway::state::ActualGateway;
use crate::gateway_state::OwnerState;

/// A device that was seen within this time is revoked to make room only if all devices were.
const IN_USE_MS: u64 = 60 * 60 * 1_000;
/// The maximum length of the name that an app sends.
const NAME_CHARACTERS_MAX: usize = 200;

/// An authenticated device, with its unlocked account.
pub(crate) struct AppSession {
    pub(crate) device: DeviceId,
    pub(crate) unlocked: UnlockedAccount,
}

impl ActualGateway {
    /// Authenticates the token in the body or, if there is none, in the header.
    pub(crate) async fn session(
        self: &Arc<Self>,
        head: &RequestHead,
        in_body: Option<&str>,
    ) -> Result<AppSession, ActualError> {
        let token = token(&head.headers, in_body)?;
        let (gateway, address) = (Arc::clone(self), head.address);
        let session =
            self.services.blocking(move |_| gateway.authenticate(&token, address)).await??;
        self.record_activity(&session);
        Ok(session)
    }

    /// Finds the device and the account of a token. Blocks.
    pub(crate) fn authenticate(
        &self,
        token: &DeviceToken,
        address: IpAddr,
    ) -> Result<AppSession, ActualError> {
        let accounts = self.services.accounts();
        let client = accounts.authenticate(token)?.device_id;
        let unlocked = accounts.unlock_by_token(token)?;
        if unlocked.login != self.settings.login {
            return Err(ActualError::TokenNotFound);
        }
        self.services.record_use(&unlocked.login, address);
        Ok(AppSession { device: client, unlocked })
    }

    /// Records that a device was active, without making it wait.
    pub(crate) fn record_activity(self: &Arc<Self>, session: &AppSession) {
        let now_ms = self.services.now_ms();
        if !self.last_seen.is_due(&session.device, now_ms) {
            return;
        }
        let (gateway, client) = (Arc::clone(self), session.device.clone());
        let unlocked = session.unlocked.clone();
        tokio::spawn(async move {
            let seen = DeviceActivity { device: client, now_ms, node_id: None, unsent_count: None };
            let noted = async {
                let vault = gateway.open(&unlocked).await?;
                vault.store(MessageBatch::default(), Quota::UNLIMITED, Some(seen)).await?;
                Ok::<_, ActualError>(())
            };
            if let Err(error) = noted.await {
                tracing::warn!(%error, "cannot record a device");
            }
        });
    }

    /// Opens the vault of an account or of one of its budgets.
    pub(crate) async fn open(&self, unlocked: &UnlockedAccount) -> Result<Vault, ActualError> {
        let unlocked = unlocked.clone();
        let open = move |services: &GatewayServices| services.vaults().open(&unlocked);
        Ok(self.services.blocking(open).await??)
    }

    /// Creates a token for a user whose password was just checked.
    pub(crate) async fn log_in(
        &self,
        unlocked: &UnlockedAccount,
        headers: &HeaderMap,
    ) -> Result<String, ActualError> {
        let token = Uuid::new_v4().to_string();
        let vault = self.open(unlocked).await?;
        let client = match self.register(unlocked, &token).await {
            Err(accounts::Error::TooManyDevices { .. }) => {
                self.evict_device(unlocked, &vault).await?;
                self.register(unlocked, &token).await
            }
            registered => registered,
        };
        let name = text(headers, USER_AGENT.as_str()).unwrap_or_else(|| "Actual".to_owned());
        let now_ms = self.services.now_ms();
        let client = VaultDevice {
            id: client?,
            name: name.chars().take(NAME_CHARACTERS_MAX).collect(),
            node_id: None,
            cursor: 0,
            unsent_count: 0,
            last_seen_ms: now_ms,
            created_ms: now_ms,
        };
        vault.add_device(client).await?;
        Ok(token)
    }

    async fn register(
        &self,
        unlocked: &UnlockedAccount,
        token: &str,
    ) -> Result<DeviceId, accounts::Error> {
        let token = DeviceToken::from_foreign_text(token)?;
        let (unlocked, now_ms) = (unlocked.clone(), self.services.now_ms());
        let register = move |services: &GatewayServices| {
            services.accounts().register_token(&unlocked, &token, None, now_ms)
        };
        let registered = self.services.blocking(register).await;
        registered.unwrap_or(Err(engine::Error::Closed.into()))
    }

    /// Revokes the device whose loss matters least: of the devices that are not in use, the one
    /// that was used over the shortest time, which is usually a script that logs in each time it
    /// runs. If all are in use, it revokes the one that was seen longest ago.
    async fn evict_device(
        &self,
        unlocked: &UnlockedAccount,
        vault: &Vault,
    ) -> Result<(), ActualError> {
        let now_ms = self.services.now_ms();
        let clients = vault.devices().await?;
        let is_idle = |client: &&VaultDevice| client.last_seen_ms + IN_USE_MS <= now_ms;
        let used_ms = |client: &&VaultDevice| {
            (client.last_seen_ms.saturating_sub(client.created_ms), client.created_ms)
        };
        let idle = clients.iter().filter(is_idle).min_by_key(used_ms);
        let oldest = || clients.iter().min_by_key(|client| client.last_seen_ms);
        let Some(leaving) = idle.or_else(oldest).map(|client| client.id.clone()) else {
            return Err(ActualError::internal("a full account without devices"));
        };
        let account = unlocked.account;
        let revoke =
            move |services: &GatewayServices| services.accounts().revoke(account, &leaving);
        vault.remove_devices(self.services.blocking(revoke).await??).await?;
        Ok(())
    }

    /// Returns the state of the single user; creates it at the first call.
    pub(crate) async fn owner(
        &self,
        unlocked: &UnlockedAccount,
    ) -> Result<OwnerState, ActualError> {
        let vault = self.open(unlocked).await?;
        match OwnerState::decode_record(&vault.gateway_state().await?.state)? {
            Some(owner) => Ok(owner),
            None => self.change_owner(&vault, |_| Ok(())).await,
        }
    }

    /// Changes the state of the single user.
    pub(crate) async fn change_owner(
        &self,
        vault: &Vault,
        change: impl Fn(&mut OwnerState) -> Result<(), ActualError> + Send + Sync + 'static,
    ) -> Result<OwnerState, ActualError> {
        let update = move |record: &[u8], _: &[_]| {
            let owner = OwnerState::decode_record(record)?;
            let user_id = || Uuid::new_v4().to_string();
            let mut owner =
                owner.unwrap_or_else(|| OwnerState { user_id: user_id(), ..OwnerState::default() });
            change(&mut owner)?;
            Ok(owner.encode_record())
        };
        let exchanged = vault.exchange(MessageBatch::default(), Arc::new(update)).await?;
        let owner = OwnerState::decode_record(&exchanged.state)?;
        owner.ok_or_else(|| ActualError::internal("an owner that was not written"))
    }
}

/// Reads the token in the body or, if there is none, in the header.
pub(crate) fn token(
    headers: &HeaderMap,
    in_body: Option<&str>,
) -> Result<DeviceToken, ActualError> {
    let in_header = text(headers, "x-actual-token");
    Ok(DeviceToken::from_foreign_text(in_body.or(in_header.as_deref()).unwrap_or_default())?)
}

/// Returns a header's value; `None` if it is missing, empty or not a text. A repeated header has
/// its values joined, as in Node.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Result<Vec<_>, _> = headers.get_all(name).iter().map(HeaderValue::to_str).collect();
    let text = values.ok()?.join(", ");
    (!text.is_empty()).then_some(text)
}
