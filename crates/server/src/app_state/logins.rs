//! Work that hashes passwords: it runs once it has a permit, and failed attempts are counted.
//!
//! # Not here
//! - The order of permits → `crate::admission::logins`.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{Login, Password, UnlockedAccount};
use engine::clock;

use crate::admission::fair_semaphore::permit_request::{PermitRequest, RequestClass};
use crate::admission::logins::LoginError;
use crate::admission::peer_network::PeerNetwork;
use crate::app_state::AppState;
use crate::blocking::run_low_priority;
use crate::error::{ApiError, OverloadError};

/// The log target that operators' fail2ban filters name (`docs/operating/access.md`). It stays the
/// same even if the code moves.
const LOG_TARGET: &str = "server::admission::logins";

impl AppState {
    /// Checks a login's password and unlocks the account.
    pub(crate) fn unlock(
        &self,
        login: &Login,
        password: &Password,
    ) -> Result<UnlockedAccount, accounts::Error> {
        self.accounts.unlock(login, password)
    }

    /// Waits for a permit, then runs work that shows whether a login's password is right.
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
            // The work holds the permit and the attempt: the request may be gone long before it
            // ends.
            let worked = work(&app, &login, &password);
            match &worked {
                Ok(_) => attempt.succeed(),
                Err(accounts::Error::WrongPassword) => {
                    tracing::warn!(
                        target: LOG_TARGET,
                        "login refused from {address}: wrong password for {login}"
                    );
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

    /// Waits for a permit, then runs work that hashes the password of an authenticated user.
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

    /// Waits for a permit, then runs work that creates an account. Requests of existing accounts
    /// go first.
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

    /// Checks whether a text is the admin token. Guesses are slowed down by network.
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
            tracing::warn!(
                target: LOG_TARGET,
                "login refused from {address}: wrong admin token"
            );
            self.metrics.record_refused_login();
            self.logins.fail(attempt);
        }
        drop(permit);
        Ok(is_right)
    }
}
