//! The way of a login: throttled, then in turn, then tried, then written to the log.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use accounts::{Login, Password, Unlocked};

use crate::admission::network::Network;
use crate::admission::throttle::{Attempt, Limit, Throttle, TooManyAttempts};
use crate::admission::turns::{Applicant, AttemptDigest, Class, Turn, Turns};
use crate::app::{App, aside};
use crate::clock;
use crate::error::{Overload, Refusal};

/// Who may prove that they are somebody, and when.
pub(crate) struct Logins {
    passwords: Arc<Throttle>,
    /// Of secrets that are no account's: who guesses logins keeps no operator out.
    secrets: Arc<Throttle>,
    registrations: Arc<Throttle>,
    turns: Arc<Turns<Network>>,
    /// Has the key of the digests, which never leaves it.
    digests: RandomState,
}

/// Why a login has not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    #[error(transparent)]
    Overload(#[from] Overload),
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
}

impl From<LoginError> for Refusal {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::TooManyAttempts(error) => error.into(),
            LoginError::Overload(error) => error.into(),
            LoginError::Accounts(error) => error.into(),
        }
    }
}

impl Logins {
    /// As many passwords are hashed at a time as there are cores: each takes tens of megabytes.
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            passwords: Throttle::new(Limit::PER_NETWORK),
            secrets: Throttle::new(Limit::PER_NETWORK),
            registrations: Throttle::new(Limit::PER_REGISTRAR),
            turns: Turns::new(cores, "too many logins are under way"),
            digests: RandomState::new(),
        }
    }

    /// Notes that a device of this account was here.
    pub(crate) fn note(&self, login: &Login, address: IpAddr) {
        self.passwords.note(login, Network::of(address));
    }

    /// Counts an account that somebody makes.
    pub(crate) fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        self.registrations.count(Network::of(address), clock::now_ms())
    }

    /// The turn of an attempt at a password or a token.
    async fn turn(
        &self,
        attempt: &Attempt,
        secret: impl Hash,
    ) -> Result<Turn<Network>, LoginError> {
        let digest = AttemptDigest(self.digests.hash_one((&attempt.origin, secret)));
        let class = if attempt.is_known { Class::Known } else { Class::Stranger };
        let rank = if attempt.is_known { 0 } else { attempt.failures_count };
        let ((_, key), lanes) = (&attempt.origin, attempt.lanes.clone());
        let applicant = Applicant { key: *key, class, rank, lanes, digest: Some(digest) };
        let turn = self.turns.take(applicant).await;
        turn.map_err(|overload| match overload {
            Overload::Busy(_) if attempt.is_slowed => {
                let retry_after_s = self.turns.retry_after_s(&attempt.lanes);
                TooManyAttempts { retry_after_s }.into()
            }
            Overload::Busy(_) | Overload::Stopping => overload.into(),
        })
    }

    /// Counts a failed attempt; others may have to wait for it.
    fn fail(&self, attempt: Attempt) {
        for (lane, pause) in attempt.fail() {
            self.turns.pause(lane, pause);
        }
    }
}

impl App {
    /// What is done at a login of which only the password is asked.
    pub(crate) fn unlock(
        &self,
        login: &Login,
        password: &Password,
    ) -> Result<Unlocked, accounts::Error> {
        self.accounts.unlock(login, password)
    }

    /// Runs work that shows whether a login's password is right, when its turn comes.
    pub(crate) async fn log_in<T, F>(
        self: &Arc<Self>,
        login: Login,
        password: Password,
        address: IpAddr,
        work: F,
    ) -> Result<T, LoginError>
    where
        F: FnOnce(&Self, &Login, &Password) -> Result<T, accounts::Error> + Send + 'static,
        T: Send + 'static,
    {
        let network = Network::of(address);
        let attempt = self.logins.passwords.begin(Some(&login), network, clock::now_ms());
        let turn = self.logins.turn(&attempt, &password).await?;
        let app = Arc::clone(self);
        let worked = aside(move || {
            // Kept by the work, not by the request, which may be gone long before.
            let worked = work(&app, &login, &password);
            match &worked {
                Ok(_) => attempt.succeed(),
                Err(accounts::Error::WrongPassword) => {
                    tracing::warn!("login refused from {address}: wrong password for {login}");
                    app.metrics.login_refused();
                    app.logins.fail(attempt);
                }
                Err(_) => attempt.cancel(),
            }
            drop(turn);
            worked
        });
        Ok(worked.await??)
    }

    /// Runs work that hashes the password of somebody who has proven who they are.
    pub(crate) async fn hash_known<T, F>(
        self: &Arc<Self>,
        address: IpAddr,
        work: F,
    ) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.in_turn(Applicant::known(Network::of(address)), work).await
    }

    /// Runs work that makes an account: after everybody who has one.
    pub(crate) async fn hash_new<T, F>(
        self: &Arc<Self>,
        address: IpAddr,
        work: F,
    ) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let known = Applicant::known(Network::of(address));
        self.in_turn(Applicant { class: Class::Registration, ..known }, work).await
    }

    async fn in_turn<T, F>(
        self: &Arc<Self>,
        applicant: Applicant<Network>,
        work: F,
    ) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let turn = self.logins.turns.take(applicant).await?;
        let app = Arc::clone(self);
        aside(move || {
            let _turn = turn;
            work(&app)
        })
        .await
    }

    /// Whether this is the operator's token. Guesses are slowed by network.
    pub(crate) async fn is_operator(&self, token: &str, address: IpAddr) -> Result<bool, Refusal> {
        let network = Network::of(address);
        let attempt = self.logins.secrets.begin(None, network, clock::now_ms());
        let turn =
            if attempt.is_slowed { Some(self.logins.turn(&attempt, token).await?) } else { None };
        let is_right = self.config.admin_token.as_ref().is_some_and(|admin| admin.is(token));
        if is_right {
            attempt.succeed();
        } else {
            tracing::warn!("login refused from {address}: wrong operator's token");
            self.metrics.login_refused();
            self.logins.fail(attempt);
        }
        drop(turn);
        Ok(is_right)
    }
}
