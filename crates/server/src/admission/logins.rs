//! The way of a login: throttled, then in turn, then tried, then told to the log.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::Login;

use crate::admission::network::Network;
use crate::admission::throttle::{Limit, Throttle, TooManyAttempts};
use crate::admission::turns::{Applicant, Turn, Turns};
use crate::app::{App, aside};
use crate::clock;
use crate::error::{Overload, Refusal};

/// Before the ranks of those who have failed already.
const RANK_FIRST: u64 = 0;
/// After everybody who logs in.
const RANK_LAST: u64 = u64::MAX;

/// Who may prove that they are somebody, and when.
pub(crate) struct Logins {
    passwords: Arc<Throttle>,
    /// Of secrets that are no account's: who guesses logins keeps no operator out.
    secrets: Arc<Throttle>,
    registrations: Arc<Throttle>,
    turns: Arc<Turns<Network>>,
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
        }
    }

    /// Notes that a device of this account was here.
    pub(crate) fn note(&self, login: &Login, address: IpAddr) {
        self.passwords.note(login, Network::of(address));
    }

    /// Counts an account that somebody makes.
    pub(crate) fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        let network = Network::of(address);
        self.registrations.begin(None, network, clock::now_ms())?.fail();
        Ok(())
    }

    async fn turn(&self, address: IpAddr, rank: u64) -> Result<Turn<Network>, Overload> {
        self.turns.take(Applicant { key: Network::of(address), rank, lane: None }).await
    }
}

impl App {
    /// Runs work that shows whether a login's password is right, when its turn comes.
    pub(crate) async fn log_in<T, F>(
        self: &Arc<Self>,
        login: Login,
        address: IpAddr,
        work: F,
    ) -> Result<T, LoginError>
    where
        F: FnOnce(&Self, &Login) -> Result<T, accounts::Error> + Send + 'static,
        T: Send + 'static,
    {
        let network = Network::of(address);
        let attempt = self.logins.passwords.begin(Some(&login), network, clock::now_ms())?;
        tokio::time::sleep(attempt.wait).await;
        let (rank, lane) = if attempt.is_known {
            (RANK_FIRST, None)
        } else {
            // Who has failed before waits for others like them, and for nobody's first attempt.
            let lane = (attempt.failures_count > 0).then(|| login.clone());
            (RANK_FIRST + 1 + attempt.failures_count, lane)
        };
        let turn = self.logins.turns.take(Applicant { key: network, rank, lane }).await?;
        let app = Arc::clone(self);
        let worked = aside(move || {
            // Kept by the work, not by the request, which may be gone long before.
            let worked = work(&app, &login);
            match &worked {
                Ok(_) => attempt.succeed(),
                Err(accounts::Error::WrongPassword) => {
                    tracing::warn!("login refused from {address}: wrong password for {login}");
                    app.metrics.login_refused();
                    attempt.fail();
                    turn.fail();
                }
                Err(_) => {}
            }
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
        let turn = self.logins.turn(address, RANK_FIRST).await?;
        self.in_turn(turn, work).await
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
        let turn = self.logins.turn(address, RANK_LAST).await?;
        self.in_turn(turn, work).await
    }

    async fn in_turn<T, F>(self: &Arc<Self>, turn: Turn<Network>, work: F) -> Result<T, Overload>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
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
        let attempt = self.logins.secrets.begin(None, network, clock::now_ms())?;
        tokio::time::sleep(attempt.wait).await;
        let is_right = self.config.admin_token.as_ref().is_some_and(|admin| admin.is(token));
        if is_right {
            attempt.succeed();
        } else {
            tracing::warn!("login refused from {address}: wrong operator's token");
            self.metrics.login_refused();
            attempt.fail();
        }
        Ok(is_right)
    }
}
