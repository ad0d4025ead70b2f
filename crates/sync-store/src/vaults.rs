//! The vaults of a server: opening and removing them, wherever they are kept.

use accounts::{Unlocked, VaultId};
use engine::Key;

use crate::error::{Error, Result};
use crate::postgres::Postgres;
use crate::sqlite::Files;
use crate::store::Vault;

/// Where a server's vaults are.
#[derive(Clone)]
pub enum Vaults {
    /// Each in an encrypted SQLite file of its own.
    Files(Files),
    /// In one PostgreSQL database, contents sealed.
    Postgres(Postgres),
}

impl Vaults {
    /// Opens the vault of a user who has proven who they are; makes it, if it is new.
    pub fn open(&self, unlocked: &Unlocked) -> Result<Vault> {
        self.open_with(&unlocked.vault, || Ok(unlocked.key.clone()))
    }

    /// Opens a vault; `key` unwraps its key, and is called only if nobody holds the key already.
    ///
    /// A missing vault is made: the account whose file was lost, or whose server stopped before the
    /// file was there, starts empty, and its devices find the difference and send everything again.
    pub fn open_with<E: From<Error>>(
        &self,
        vault: &VaultId,
        key: impl FnOnce() -> Result<Key, E>,
    ) -> Result<Vault, E> {
        match self {
            Self::Files(files) => files.open_with(vault, key),
            Self::Postgres(postgres) => Ok(postgres.open(vault, &key()?)),
        }
    }

    /// Removes a vault with all that is in it. One that is not there is no error.
    pub async fn remove(&self, vault: &VaultId) -> Result<()> {
        match self {
            Self::Files(files) => files.remove(vault).await,
            Self::Postgres(postgres) => postgres.remove(vault).await,
        }
    }
}
