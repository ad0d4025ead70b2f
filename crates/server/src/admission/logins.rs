//! The way of a login: slowed, then given a permit, then tried, then written to the log.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use accounts::{Login, Password, UnlockedAccount};

use crate::admission::fair_semaphore::{
    AttemptDigest, FairPermit, FairSemaphore, PermitRequest, RequestClass,
};
use crate::admission::peer_network::PeerNetwork;
use crate::admission::rate_limiter::{LoginAttempt, RateLimit, RateLimiter, TooManyAttempts};
use crate::app_state::{AppState, run_low_priority};
use crate::clock;
use crate::error::{ApiError, OverloadError};

/// Who may prove that they are somebody, and when.
pub(crate) struct LoginAdmission {
    passwords: Arc<RateLimiter>,
    /// Of secrets that are no account's: who guesses logins keeps no operator out.
    secrets: Arc<RateLimiter>,
    registrations: Arc<RateLimiter>,
    hash_permits: Arc<FairSemaphore<PeerNetwork>>,
    /// Has the key of the digests, which never leaves it.
    digests: RandomState,
}

/// Why a login has not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    #[error(transparent)]
    Overload(#[from] OverloadError),
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::TooManyAttempts(error) => error.into(),
            LoginError::Overload(error) => error.into(),
            LoginError::Accounts(error) => error.into(),
        }
    }
}

impl LoginAdmission {
    /// As many passwords are hashed at a time as there are cores: each takes tens of megabytes.
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            passwords: RateLimiter::new(RateLimit::PER_NETWORK),
            secrets: RateLimiter::new(RateLimit::PER_NETWORK),
            registrations: RateLimiter::new(RateLimit::PER_REGISTRAR),
            hash_permits: FairSemaphore::new(cores, "too many logins are under way"),
            digests: RandomState::new(),
        }
    }

    /// Notes that a device of this account was here.
    pub(crate) fn record_use(&self, login: &Login, address: IpAddr) {
        self.passwords.record_known_network(login, PeerNetwork::from_address(address));
    }

    /// Counts an account that somebody makes.
    pub(crate) fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        self.registrations.count(PeerNetwork::from_address(address), clock::now_ms())
    }

    /// The permit of an attempt at a password or a token.
    async fn acquire_permit(
        &self,
        attempt: &LoginAttempt,
        secret: impl Hash,
    ) -> Result<FairPermit<PeerNetwork>, LoginError> {
        let digest = AttemptDigest(self.digests.hash_one((&attempt.origin, secret)));
        let class = if attempt.is_known { RequestClass::Known } else { RequestClass::Unknown };
        let rank = if attempt.is_known { 0 } else { attempt.failures_count };
        let ((_, key), lanes) = (&attempt.origin, attempt.lanes.clone());
        let applicant = PermitRequest { key: *key, class, rank, lanes, digest: Some(digest) };
        let permit = self.hash_permits.acquire(applicant).await;
        permit.map_err(|overload| match overload {
            OverloadError::Busy(_) if attempt.is_slowed => {
                let retry_after_s = self.hash_permits.retry_after_s(&attempt.lanes);
                TooManyAttempts { retry_after_s }.into()
            }
            OverloadError::Busy(_) | OverloadError::Stopping => overload.into(),
        })
    }

    /// Counts a failed attempt; others may have to wait for it.
    fn fail(&self, attempt: LoginAttempt) {
        for (lane, pause) in attempt.fail() {
            self.hash_permits.pause(lane, pause);
        }
    }
}

impl AppState {
    /// What is done at a login of which only the password is asked.
    pub(crate) fn unlock(
        &self,
        login: &Login,
        password: &Password,
    ) -> Result<UnlockedAccount, accounts::Error> {
        self.accounts.unlock(login, password)
    }

    /// Runs work that shows whether a login's password is right, when it gets its permit.
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
        let network = PeerNetwork::from_address(address);
        let attempt = self.logins.passwords.begin(Some(&login), network, clock::now_ms());
        let permit = self.logins.acquire_permit(&attempt, &password).await?;
        let app = Arc::clone(self);
        let worked = run_low_priority(move || {
            // Kept by the work, not by the request, which may be gone long before.
            let worked = work(&app, &login, &password);
            match &worked {
                Ok(_) => attempt.succeed(),
                Err(accounts::Error::WrongPassword) => {
                    tracing::warn!("login refused from {address}: wrong password for {login}");
                    app.metrics.record_refused_login();
                    app.logins.fail(attempt);
                }
                Err(_) => attempt.cancel(),
            }
            drop(permit);
            worked
        });
        Ok(worked.await??)
    }

    /// Runs work that hashes the password of somebody who has proven who they are.
    pub(crate) async fn hash_for_authenticated<T, F>(
        self: &Arc<Self>,
        address: IpAddr,
        work: F,
    ) -> Result<T, OverloadError>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.run_with_permit(PermitRequest::known(PeerNetwork::from_address(address)), work).await
    }

    /// Runs work that makes an account: after everybody who has one.
    pub(crate) async fn hash_for_registration<T, F>(
        self: &Arc<Self>,
        address: IpAddr,
        work: F,
    ) -> Result<T, OverloadError>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let known = PermitRequest::known(PeerNetwork::from_address(address));
        self.run_with_permit(PermitRequest { class: RequestClass::Registration, ..known }, work)
            .await
    }

    async fn run_with_permit<T, F>(
        self: &Arc<Self>,
        applicant: PermitRequest<PeerNetwork>,
        work: F,
    ) -> Result<T, OverloadError>
    where
        F: FnOnce(&Self) -> T + Send + 'static,
        T: Send + 'static,
    {
        let permit = self.logins.hash_permits.acquire(applicant).await?;
        let app = Arc::clone(self);
        run_low_priority(move || {
            let _turn = permit;
            work(&app)
        })
        .await
    }

    /// Whether this is the operator's token. Guesses are slowed by network.
    pub(crate) async fn is_operator(&self, token: &str, address: IpAddr) -> Result<bool, ApiError> {
        let network = PeerNetwork::from_address(address);
        let attempt = self.logins.secrets.begin(None, network, clock::now_ms());
        let permit = if attempt.is_slowed {
            Some(self.logins.acquire_permit(&attempt, token).await?)
        } else {
            None
        };
        let is_right = self.config.admin_token.as_ref().is_some_and(|admin| admin.is(token));
        if is_right {
            attempt.succeed();
        } else {
            tracing::warn!("login refused from {address}: wrong operator's token");
            self.metrics.record_refused_login();
            self.logins.fail(attempt);
        }
        drop(permit);
        Ok(is_right)
    }
}
