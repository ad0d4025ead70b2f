//! The vaults of a server: opens and removes them in either storage.

use accounts::{UnlockedAccount, VaultId};
use engine::DatabaseKey;

use crate::error::{Error, Result};
use crate::postgres::PostgresDatabase;
use crate::sqlite::{VaultFileSizes, VaultFiles};
use crate::vault::Vault;

/// The storage of a server's vaults.
#[derive(Clone)]
pub enum Vaults {
    /// Encrypted SQLite files, one for each vault.
    Files(VaultFiles),
    /// One PostgreSQL database with sealed contents.
    Postgres(PostgresDatabase),
}

impl Vaults {
    /// Opens the vault of an authenticated user. Creates it if it is new.
    pub fn open(&self, unlocked: &UnlockedAccount) -> Result<Vault> {
        self.open_with(&unlocked.vault, || Ok(unlocked.key.clone()))
    }

    /// Opens a vault; `key` unwraps its key, and is called only if the key is not in memory yet.
    ///
    /// A missing vault is created: an account whose file was lost, or whose server stopped before
    /// the file existed, starts empty, and its devices find the difference and send everything
    /// again.
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

    /// Returns a vault that is open already, for callers without its key. Returns `None` if it is
    /// not open or not a file: in PostgreSQL, no vault stays open between two calls.
    pub fn get_open(&self, vault: &VaultId) -> Option<Vault> {
        match self {
            Self::Files(files) => files.get_open(vault),
            Self::Postgres(_) => None,
        }
    }

    /// Returns the sizes of one vault's files from the file system, or `None` if there are none.
    pub fn file_sizes(&self, vault: &VaultId) -> Option<VaultFileSizes> {
        match self {
            Self::Files(files) => files.file_sizes(vault),
            Self::Postgres(_) => None,
        }
    }

    /// Returns the sizes of all vaults' files from the file system, or `None` if vaults have no
    /// files. Blocks: about a second for a few hundred thousand files.
    pub fn sizes(&self) -> Result<Option<Vec<(VaultId, VaultFileSizes)>>> {
        match self {
            Self::Files(files) => files.sizes().map(Some),
            Self::Postgres(_) => Ok(None),
        }
    }

    /// Removes a vault and its contents. Does not fail if it is missing.
    pub async fn remove(&self, vault: &VaultId) -> Result<()> {
        match self {
            Self::Files(files) => files.remove(vault).await,
            Self::Postgres(postgres) => postgres.remove(vault).await,
        }
    }
}
