//! Admission of logins: an attempt is slowed down, gets a permit, is tried and then logged.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use accounts::Login;
use engine::clock;

use crate::admission::fair_semaphore::permit_request::{
    AttemptDigest, PermitRequest, RequestClass,
};
use crate::admission::fair_semaphore::{FairPermit, FairSemaphore};
use crate::admission::peer_network::PeerNetwork;
use crate::admission::rate_limiter::{LoginAttempt, RateLimit, RateLimiter, TooManyAttempts};
use crate::error::{ApiError, OverloadError};

/// The limits on attempts at passwords, secrets and registrations.
pub(crate) struct LoginAdmission {
    pub(crate) passwords: Arc<RateLimiter>,
    /// The limiter for secrets without an account. It is separate, so guesses at logins do not lock
    /// the operator out.
    pub(crate) secrets: Arc<RateLimiter>,
    registrations: Arc<RateLimiter>,
    pub(crate) hash_permits: Arc<FairSemaphore<PeerNetwork>>,
    /// The random key of the digests, which never leaves this type.
    digests: RandomState,
}

/// The reasons why a login did not succeed.
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
    /// Creates the limiters. At most `cores` passwords are hashed at the same time: each hash takes
    /// tens of megabytes.
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            passwords: RateLimiter::new(RateLimit::PER_NETWORK),
            secrets: RateLimiter::new(RateLimit::PER_NETWORK),
            registrations: RateLimiter::new(RateLimit::PER_REGISTRAR),
            hash_permits: FairSemaphore::new(cores, "too many logins are in progress"),
            digests: RandomState::new(),
        }
    }

    /// Records that a device of this account was used from this address.
    pub(crate) fn record_use(&self, login: &Login, address: IpAddr) {
        self.passwords.record_known_network(login, PeerNetwork::from_address(address));
    }

    /// Counts a registration of an account, or refuses it.
    pub(crate) fn begin_registration(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        self.registrations.count(PeerNetwork::from_address(address), clock::now_ms())
    }

    /// Waits for the permit of an attempt at a password or a token.
    pub(crate) async fn acquire_permit(
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

    /// Counts a failed attempt and pauses its lanes.
    pub(crate) fn fail(&self, attempt: LoginAttempt) {
        for (lane, pause) in attempt.fail() {
            self.hash_permits.pause(lane, pause);
        }
    }
}
