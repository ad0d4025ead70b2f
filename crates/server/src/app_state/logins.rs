//! Work that hashes passwords, each when it gets its permit, and what a failed attempt costs.
//!
//! # Not here
//! - Who gets a permit when → `crate::admission::logins`.

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

/// Named in operators' fail2ban filters (`docs/operating/access.md`), wherever the code is.
const LOG_TARGET: &str = "server::admission::logins";

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

    /// Whether this is the admin token. Guesses are slowed by network.
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
