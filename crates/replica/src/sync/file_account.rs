//! Keeps a file with the account that it belongs to: a login on a server.
//!
//! # Invariants
//! - A sign-in to another account is refused before anything is sent or stored.
//!
//! # Not here
//! - Registering the file → `sign_in.rs`.

use protocol::DeviceList;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;

/// The part of an account that a sign-in must have in common with the account of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountCheck {
    /// The server and the login. Accounts on two servers may have the same login.
    ServerAndLogin,
    /// Only the login: the user said that the server has moved. Also in a browser, where the app
    /// chooses the server, and the user only the login.
    Login,
}

/// The account that a file belongs to, also after the file signed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAccount {
    /// The address of the server.
    pub server: String,
    /// The login on this server.
    pub login: String,
}

impl FileAccount {
    /// Returns the account of the file behind a connection, also if the file is not a replica.
    pub fn read(db: &Connection) -> Result<Option<Self>> {
        let is_replica =
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'warren_meta'";
        if db.query_row(is_replica, [], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        let server = meta::get(db, ReplicaMetaKey::Server)?;
        let login = meta::get(db, ReplicaMetaKey::Login)?;
        Ok(server.zip(login).map(|(server, login)| Self { server, login }))
    }

    /// Returns whether this is the account's login. Servers ignore its case, too.
    pub fn has_login(&self, login: &str) -> bool {
        self.login.eq_ignore_ascii_case(login)
    }

    /// Checks that a file which will replace one of this account belongs to no other login.
    ///
    /// # Errors
    /// [`Error::AccountDiffers`] if it does.
    pub fn check_replacement(&self, file: &Connection) -> Result<()> {
        match Self::read(file)? {
            Some(Self { server, login }) if !self.has_login(&login) => {
                Err(Error::AccountDiffers { path: "the file".to_owned(), server, login })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn matches(&self, server: &str, login: &str) -> bool {
        self.server == server && self.has_login(login)
    }
}

impl Replica {
    /// Returns the account that this file belongs to, if it has signed in to one.
    pub fn account(&self) -> Result<Option<FileAccount>> {
        FileAccount::read(&self.db)
    }

    /// Returns the server that this file syncs with, if it has signed in to one.
    pub fn server(&self) -> Result<Option<String>> {
        meta::get(&self.db, ReplicaMetaKey::Server)
    }

    /// Checks that the file may sign in to this account, and returns the account that it belongs to
    /// now, if there is one.
    ///
    /// # Errors
    /// [`Error::AccountDiffers`] if the file belongs to another account.
    pub fn check_account(
        &self,
        server: &str,
        login: &str,
        check: AccountCheck,
    ) -> Result<Option<FileAccount>> {
        let Some(known) = self.account()? else { return Ok(None) };
        let is_same = match check {
            AccountCheck::ServerAndLogin => known.matches(server, login),
            AccountCheck::Login => known.has_login(login),
        };
        if is_same { Ok(Some(known)) } else { Err(self.account_differs(known)) }
    }

    /// Records a new address of this file's server. `list` is the answer of the server at that
    /// address to `GET /v1/devices` with the file's token. It must contain the file's device. The
    /// device's id is not in the request, so no program that answers every request with the same
    /// text is taken for the server.
    ///
    /// # Errors
    /// [`Error::DeviceNotListed`] if it does not.
    pub fn follow_server(&self, server: &str, list: &DeviceList) -> Result<()> {
        self.transaction(|db| {
            let own: Option<String> = meta::get(db, ReplicaMetaKey::DeviceId)?;
            let is_own = |id: &str| own.as_deref().is_some_and(|own| own == id);
            if !list.devices.iter().any(|device| device.current && is_own(&device.device_id)) {
                return Err(Error::DeviceNotListed { server: server.to_owned() });
            }
            meta::set(db, ReplicaMetaKey::Server, server)
        })
    }

    fn account_differs(&self, known: FileAccount) -> Error {
        let FileAccount { server, login } = known;
        Error::AccountDiffers { path: self.path().display().to_string(), server, login }
    }
}
