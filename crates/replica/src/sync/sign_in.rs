//! Registers a file as a device of an account.

use protocol::{RegisterDeviceRequest, RegisterDeviceResponse};
use rusqlite::Connection;

use super::account_encryption;
use super::file_account::AccountCheck;
use super::sync_report::SyncReport;
use crate::error::Result;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;
use crate::transport::AsyncTransport;

impl Replica {
    /// Registers this file as a device of an account, and records the server. A file whose token
    /// was revoked can register again. `server` is in the form of [`crate::ServerUrl`], so that one
    /// server has one address.
    ///
    /// # Errors
    /// [`crate::Error::AccountDiffers`] if the file belongs to another account.
    pub async fn sign_in_async(
        &self,
        transport: &mut dyn AsyncTransport,
        server: &str,
        request: &RegisterDeviceRequest,
        check: AccountCheck,
    ) -> Result<()> {
        self.check_account(server, &request.login, check)?;
        let registered = transport.register(None, request).await?;
        self.transaction(|db| {
            // Another process may have signed in to another account in the meantime.
            let known = self.check_account(server, &request.login, check)?;
            if !known.is_some_and(|known| known.matches(server, &request.login)) {
                // The sequence numbers of another server mean nothing for this one.
                meta::set_number(db, ReplicaMetaKey::Cursor, 0)?;
                account_encryption::reset(db)?;
                message_log::mark_all_unsent(db)?;
            }
            account_encryption::record_server_mode(db, registered.encryption.as_ref())?;
            meta::set(db, ReplicaMetaKey::Server, server)?;
            meta::set(db, ReplicaMetaKey::Login, request.login.as_str())?;
            meta::set(db, ReplicaMetaKey::DeviceName, request.name.as_str())?;
            remember(db, &registered)
        })
    }

    /// Returns this device's token, if it is registered.
    pub fn token(&self) -> Result<Option<String>> {
        meta::get(&self.db, ReplicaMetaKey::Token)
    }

    /// Forgets this device's token. Server and account stay recorded, so a later sign-in to the
    /// same account continues where this device stopped.
    pub fn sign_out(&self) -> Result<()> {
        self.transaction(|db| meta::set(db, ReplicaMetaKey::Token, None::<String>))
    }

    /// Registers a copied file, with the token of its original.
    pub(crate) async fn register_copy(
        &self,
        transport: &mut dyn AsyncTransport,
        report: &mut SyncReport,
    ) -> Result<()> {
        if !meta::get::<bool>(&self.db, ReplicaMetaKey::RegisterCopy)?.unwrap_or(false) {
            return Ok(());
        }
        let token = meta::get::<String>(&self.db, ReplicaMetaKey::Token)?;
        let name = meta::get::<String>(&self.db, ReplicaMetaKey::DeviceName)?.unwrap_or_default();
        let registered = match token {
            Some(token) => {
                let name = format!("{name} (copy)");
                let request =
                    RegisterDeviceRequest { login: String::new(), password: String::new(), name };
                Some(transport.register(Some(&token), &request).await?)
            }
            None => None,
        };
        report.registered_copy = true;
        self.transaction(|db| {
            registered.map_or(Ok(()), |registered| remember(db, &registered))?;
            meta::set(db, ReplicaMetaKey::RegisterCopy, false)
        })
    }
}

fn remember(db: &Connection, registered: &RegisterDeviceResponse) -> Result<()> {
    meta::set(db, ReplicaMetaKey::DeviceId, registered.device_id.as_str())?;
    meta::set(db, ReplicaMetaKey::Token, registered.token.as_str())
}
