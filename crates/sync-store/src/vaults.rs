//! The vaults of a server: opening and removing them, wherever they are kept.

use accounts::{UnlockedAccount, VaultId};
use engine::DatabaseKey;

use crate::error::{Error, Result};
use crate::postgres::PostgresDatabase;
use crate::sqlite::{VaultFileSizes, VaultFiles};
use crate::vault::Vault;

/// Where a server's vaults are.
#[derive(Clone)]
pub enum Vaults {
    /// Each in an encrypted SQLite file of its own.
    Files(VaultFiles),
    /// In one PostgreSQL database, contents sealed.
    Postgres(PostgresDatabase),
}

impl Vaults {
    /// Opens the vault of a user who has proven who they are; makes it, if it is new.
    pub fn open(&self, unlocked: &UnlockedAccount) -> Result<Vault> {
        self.open_with(&unlocked.vault, || Ok(unlocked.key.clone()))
    }

    /// Opens a vault; `key` unwraps its key, and is called only if nobody holds the key already.
    ///
    /// A missing vault is made: the account whose file was lost, or whose server stopped before the
    /// file was there, starts empty, and its devices find the difference and send everything again.
    pub fn open_with<E: From<Error>>(
        &self,
        vault: &VaultId,
        key: impl FnOnce() -> Result<DatabaseKey, E>,
    ) -> Result<Vault, E> {
        match self {
            Self::Files(files) => files.open_with(vault, key),
            Self::Postgres(postgres) => Ok(postgres.open(vault, &key()?)),
        }
    }

    /// A vault that somebody has opened, and who asks has no key to. `None` if it is not open, or not
    /// a file of its own: nothing in PostgreSQL is open between two calls.
    pub fn get_open(&self, vault: &VaultId) -> Option<Vault> {
        match self {
            Self::Files(files) => files.get_open(vault),
            Self::Postgres(_) => None,
        }
    }

    /// The files of one vault, by the file system. `None` if there are none.
    pub fn file_sizes(&self, vault: &VaultId) -> Option<VaultFileSizes> {
        match self {
            Self::Files(files) => files.file_sizes(vault),
            Self::Postgres(_) => None,
        }
    }

    /// The files of all vaults, by the file system; `None` if they have none of their own. Blocks: a
    /// second for some hundred thousand.
    pub fn sizes(&self) -> Result<Option<Vec<(VaultId, VaultFileSizes)>>> {
        match self {
            Self::Files(files) => files.sizes().map(Some),
            Self::Postgres(_) => Ok(None),
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
