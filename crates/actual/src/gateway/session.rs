//! Who asks: tokens, logins, and the account behind them.
//!
//! # Invariants
//! - A token opens the account of [`Settings::login`](crate::Settings) or nothing.
//! - A token is checked at every request: revoking takes effect at once.
//! - An account with as many tokens as it may have loses one at the next login, not the login.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use accounts::{ClientId, Token, Unlocked};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, HeaderValue};
use lru::LruCache;
use server::Services;
use sync_store::{Batch, Client, Quota, Seen, Vault};
use uuid::Uuid;

use crate::gateway::Gate;
use crate::gateway::fault::Fault;
use crate::gateway::head::Head;
use crate::record::Owner;

/// How often a device's last sync is noted: often enough for a list of devices.
const NOTE_INTERVAL_MS: u64 = 10 * 60 * 1_000;
/// Devices whose notes are remembered.
const NOTED_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
/// A device that was seen so lately is not revoked to make room.
const IN_USE_MS: u64 = 60 * 60 * 1_000;
/// Of what an app calls itself.
const NAME_CHARACTERS_MAX: usize = 200;

/// A device that has shown its token, and its account, open.
pub(crate) struct Session {
    pub(crate) client: ClientId,
    pub(crate) unlocked: Unlocked,
}

/// When each device was last noted to be here.
pub(crate) struct Noted(Mutex<LruCache<ClientId, u64>>);

impl Default for Noted {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NOTED_COUNT_MAX)))
    }
}

impl Noted {
    /// Whether it is time for another note; if so, it counts as made.
    fn is_due(&self, client: &ClientId, now_ms: u64) -> bool {
        let mut noted = self.0.lock().expect("no code panics while it holds this lock");
        let last_ms = noted.get(client).copied().unwrap_or_default();
        let is_due = last_ms + NOTE_INTERVAL_MS <= now_ms;
        if is_due {
            noted.put(client.clone(), now_ms);
        }
        is_due
    }
}

impl Gate {
    /// Who sent a token: in the body, or else in the header.
    pub(crate) async fn session(
        self: &Arc<Self>,
        head: &Head,
        in_body: Option<&str>,
    ) -> Result<Session, Fault> {
        let token = token(&head.headers, in_body)?;
        let (gate, address) = (Arc::clone(self), head.address);
        let session = self.services.blocking(move |_| gate.authenticate(&token, address)).await??;
        self.note(&session);
        Ok(session)
    }

    /// Whose token it is. Blocks.
    pub(crate) fn authenticate(&self, token: &Token, address: IpAddr) -> Result<Session, Fault> {
        let accounts = self.services.accounts();
        let client = accounts.authenticate(token)?.client_id;
        let unlocked = accounts.unlock_by_token(token)?;
        if unlocked.login != self.settings.login {
            return Err(Fault::TokenNotFound);
        }
        self.services.note(&unlocked.login, address);
        Ok(Session { client, unlocked })
    }

    /// Notes that a device was here, without keeping it waiting.
    pub(crate) fn note(self: &Arc<Self>, session: &Session) {
        let now_ms = self.services.now_ms();
        if !self.noted.is_due(&session.client, now_ms) {
            return;
        }
        let (gate, client) = (Arc::clone(self), session.client.clone());
        let unlocked = session.unlocked.clone();
        tokio::spawn(async move {
            let seen = Seen { client, now_ms, node: None, unsent: None };
            let noted = async {
                let vault = gate.open(&unlocked).await?;
                vault.store(Batch::default(), Quota::UNLIMITED, Some(seen)).await?;
                Ok::<_, Fault>(())
            };
            if let Err(error) = noted.await {
                tracing::warn!(%error, "noting a device");
            }
        });
    }

    /// Opens the vault of an account, or one of its budgets'.
    pub(crate) async fn open(&self, unlocked: &Unlocked) -> Result<Vault, Fault> {
        let unlocked = unlocked.clone();
        let open = move |services: &Services| services.vaults().open(&unlocked);
        Ok(self.services.blocking(open).await??)
    }

    /// Makes a token for whoever has just proven the password.
    pub(crate) async fn log_in(
        &self,
        unlocked: &Unlocked,
        headers: &HeaderMap,
    ) -> Result<String, Fault> {
        let token = Uuid::new_v4().to_string();
        let vault = self.open(unlocked).await?;
        let client = match self.register(unlocked, &token).await {
            Err(accounts::Error::TooManyClients { .. }) => {
                self.make_room(unlocked, &vault).await?;
                self.register(unlocked, &token).await
            }
            registered => registered,
        };
        let name = text(headers, USER_AGENT.as_str()).unwrap_or_else(|| "Actual".to_owned());
        let now_ms = self.services.now_ms();
        let client = Client {
            id: client?,
            name: name.chars().take(NAME_CHARACTERS_MAX).collect(),
            node: None,
            cursor: 0,
            unsent: 0,
            seen_ms: now_ms,
            created_ms: now_ms,
        };
        vault.add_client(client).await?;
        Ok(token)
    }

    async fn register(
        &self,
        unlocked: &Unlocked,
        token: &str,
    ) -> Result<ClientId, accounts::Error> {
        let token = Token::foreign(token)?;
        let (unlocked, now_ms) = (unlocked.clone(), self.services.now_ms());
        let register = move |services: &Services| {
            services.accounts().register_token(&unlocked, &token, None, now_ms)
        };
        let registered = self.services.blocking(register).await;
        registered.unwrap_or(Err(engine::Error::Closed.into()))
    }

    /// Revokes the device that is missed least: of those that are not in use, the one that was used
    /// over the shortest time. That is a script's, which logs in each time it runs.
    async fn make_room(&self, unlocked: &Unlocked, vault: &Vault) -> Result<(), Fault> {
        let now_ms = self.services.now_ms();
        let clients = vault.clients().await?;
        let is_idle = |client: &&Client| client.seen_ms + IN_USE_MS <= now_ms;
        let used_ms = |client: &&Client| {
            (client.seen_ms.saturating_sub(client.created_ms), client.created_ms)
        };
        let idle = clients.iter().filter(is_idle).min_by_key(used_ms);
        let oldest = || clients.iter().min_by_key(|client| client.seen_ms);
        let Some(leaving) = idle.or_else(oldest).map(|client| client.id.clone()) else {
            return Err(Fault::internal("a full account without devices"));
        };
        let account = unlocked.account;
        let revoke = move |services: &Services| services.accounts().revoke(account, &leaving);
        vault.remove_clients(self.services.blocking(revoke).await??).await?;
        Ok(())
    }

    /// What is kept of the one user; made at the first call.
    pub(crate) async fn owner(&self, unlocked: &Unlocked) -> Result<Owner, Fault> {
        let vault = self.open(unlocked).await?;
        match Owner::decode_record(&vault.record().await?.record)? {
            Some(owner) => Ok(owner),
            None => self.change_owner(&vault, |_| Ok(())).await,
        }
    }

    /// Changes what is kept of the one user.
    pub(crate) async fn change_owner(
        &self,
        vault: &Vault,
        change: impl Fn(&mut Owner) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Result<Owner, Fault> {
        let amend = move |record: &[u8], _: &[_]| {
            let owner = Owner::decode_record(record)?;
            let user_id = || Uuid::new_v4().to_string();
            let mut owner =
                owner.unwrap_or_else(|| Owner { user_id: user_id(), ..Owner::default() });
            change(&mut owner)?;
            Ok(owner.encode_record())
        };
        let exchanged = vault.exchange(Batch::default(), Arc::new(amend)).await?;
        let owner = Owner::decode_record(&exchanged.record)?;
        owner.ok_or_else(|| Fault::internal("an owner that was not written"))
    }
}

/// The token in the body, or else in the header.
pub(crate) fn token(headers: &HeaderMap, in_body: Option<&str>) -> Result<Token, Fault> {
    let in_header = text(headers, "x-actual-token");
    Ok(Token::foreign(in_body.or(in_header.as_deref()).unwrap_or_default())?)
}

/// A header's value; `None` if it is missing, empty or no text. One that is there twice has both
/// values, as Node joins them.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Result<Vec<_>, _> = headers.get_all(name).iter().map(HeaderValue::to_str).collect();
    let text = values.ok()?.join(", ");
    (!text.is_empty()).then_some(text)
}
