//! Registering a file as a device of an account.

use protocol::{ClientRequest, ClientResponse};
use rusqlite::Connection;

use crate::error::Result;
use crate::form;
use crate::log;
use crate::meta::{self, Key};
use crate::replica::Replica;
use crate::report::Report;
use crate::transport::AsyncTransport;

impl Replica {
    /// Registers this file as a device of an account, and remembers where; also again, after its
    /// token was revoked.
    pub async fn sign_in_async(
        &self,
        transport: &mut dyn AsyncTransport,
        server: &str,
        request: &ClientRequest,
    ) -> Result<()> {
        let registered = transport.register(None, request).await?;
        self.transaction(|db| {
            let before = (meta::get(db, Key::Server)?, meta::get(db, Key::Login)?);
            if before != (Some(server.to_owned()), Some(request.login.clone())) {
                // Another account's arrival numbers mean nothing to this one.
                meta::set_number(db, Key::Cursor, 0)?;
                form::forget(db)?;
                log::mark_all_unsent(db)?;
            }
            form::note(db, registered.form.as_ref())?;
            meta::set(db, Key::Server, server)?;
            meta::set(db, Key::Login, request.login.as_str())?;
            meta::set(db, Key::DeviceName, request.name.as_str())?;
            remember(db, &registered)
        })
    }

    /// The server that this file syncs with, if it was told once.
    pub fn server(&self) -> Result<Option<String>> {
        meta::get(&self.db, Key::Server)
    }

    /// This device's secret, if it is registered.
    pub fn token(&self) -> Result<Option<String>> {
        meta::get(&self.db, Key::Token)
    }

    /// Forgets this device's token. Server and account are kept: whoever signs in to the same again
    /// goes on where this device was.
    pub fn sign_out(&self) -> Result<()> {
        self.transaction(|db| meta::set(db, Key::Token, None::<String>))
    }

    /// A copy asks with its original's token for one of its own.
    pub(crate) async fn enrol_copy(
        &self,
        transport: &mut dyn AsyncTransport,
        report: &mut Report,
    ) -> Result<()> {
        if !meta::get::<bool>(&self.db, Key::Enrol)?.unwrap_or(false) {
            return Ok(());
        }
        let token = meta::get::<String>(&self.db, Key::Token)?;
        let name = meta::get::<String>(&self.db, Key::DeviceName)?.unwrap_or_default();
        let registered = match token {
            Some(token) => {
                let name = format!("{name} (copy)");
                let request = ClientRequest { login: String::new(), password: String::new(), name };
                Some(transport.register(Some(&token), &request).await?)
            }
            None => None,
        };
        report.became_device = true;
        self.transaction(|db| {
            registered.map_or(Ok(()), |registered| remember(db, &registered))?;
            meta::set(db, Key::Enrol, false)
        })
    }
}

fn remember(db: &Connection, registered: &ClientResponse) -> Result<()> {
    meta::set(db, Key::ClientId, registered.client_id.as_str())?;
    meta::set(db, Key::Token, registered.token.as_str())
}
