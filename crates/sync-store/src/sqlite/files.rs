//! The vaults' files in a data directory: their paths, and how they are opened and removed.
//!
//! # Invariants
//! - A vault opens only with the key that its user's password or token unwrapped.
//! - Only a server, or a process that holds the data directory alone, repairs damaged vaults.
//!
//! # Not here
//! - Which vaults are open, and for how long → `engine::Databases`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::{UnlockedAccount, VaultId};
use engine::{
    DamagePolicy, Database, DatabaseKey, DatabaseOptions, Databases, FileEncryption, SIDE_FILES,
    create_directory, directory_of, quarantine_path, remove_if_there, run_blocking, side_file_path,
    sync_directory,
};

use crate::error::{Error, Result};
use crate::sqlite::schema::MIGRATIONS;
use crate::sqlite::{SqliteStore, VaultDamage, repair};
use crate::vault::Vault;
use crate::vault::gateway::RepairStateFn;

/// The vaults' files in one data directory.
#[derive(Clone)]
pub struct VaultFiles {
    databases: Arc<Databases>,
    pub(super) data: PathBuf,
    damage: DamagePolicy,
}

impl VaultFiles {
    pub fn new(databases: Arc<Databases>, data: PathBuf) -> Self {
        Self { databases, data, damage: DamagePolicy::Report }
    }

    /// Makes damaged vaults be quarantined and repaired with the data that can be read from them.
    #[must_use]
    pub fn with_repair(self, repair_state: RepairStateFn) -> Self {
        Self { damage: repair::policy(repair_state), ..self }
    }

    /// Scans the whole file of a vault and repairs it if it is damaged. Blocks.
    ///
    /// Returns [`engine::Error::AlreadyQuarantined`] if a damaged file of this vault is quarantined
    /// already, and [`engine::Error::Busy`] if another program has the file open.
    pub fn repair(&self, unlocked: &UnlockedAccount) -> Result<Option<VaultDamage>> {
        let path = unlocked.vault.path(&self.data);
        let quarantined_path = quarantine_path(&path);
        let was_there = quarantined_path.exists();
        let database = self.open_database::<Error>(&path, || Ok(unlocked.key.clone()))?;
        let found = if quarantined_path.exists() && !was_there {
            Some("the file cannot be opened".to_owned())
        } else {
            database.repair_damage()?
        };
        Ok(found.map(|found| VaultDamage { found, quarantined_path }))
    }

    /// Opens a vault's file: [`crate::Vaults::open_with`].
    pub(crate) fn open_with<E: From<Error>>(
        &self,
        vault: &VaultId,
        key: impl FnOnce() -> Result<DatabaseKey, E>,
    ) -> Result<Vault, E> {
        let database = self.open_database(&vault.path(&self.data), key)?;
        Ok(Arc::new(SqliteStore::new(database)))
    }

    fn open_database<E: From<Error>>(
        &self,
        path: &Path,
        key: impl FnOnce() -> Result<DatabaseKey, E>,
    ) -> Result<Arc<Database>, E> {
        create_directory(directory_of(path)).map_err(Error::from)?;
        let mut refused = None;
        let options = || match key() {
            Ok(key) => DatabaseOptions {
                is_sole_writer: true,
                migrations: MIGRATIONS,
                create: true,
                damage: self.damage.clone(),
                ..DatabaseOptions::new(FileEncryption::Key { key, cipher: None })
            },
            // The engine cannot accept an error here; without a key it opens and creates no file.
            Err(error) => {
                refused = Some(error);
                DatabaseOptions::new(FileEncryption::None)
            }
        };
        let opened = self.databases.open(path, options);
        match refused {
            Some(error) => Err(error),
            None => Ok(opened.map_err(Error::from)?),
        }
    }

    /// Returns an open vault: [`crate::Vaults::get_open`].
    pub(crate) fn get_open(&self, vault: &VaultId) -> Option<Vault> {
        let database = self.databases.get_open(&vault.path(&self.data))?;
        Some(Arc::new(SqliteStore::new(database)))
    }

    /// Closes a vault and deletes its files. Does not fail if it is missing.
    pub(crate) async fn remove(&self, vault: &VaultId) -> Result<()> {
        let (files, path) = (self.clone(), vault.path(&self.data));
        run_blocking(move || files.remove_file(&path)).await?
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        if !directory_of(path).is_dir() {
            return Ok(());
        }
        self.databases.close(path)?;
        remove_if_there(path)?;
        for suffix in SIDE_FILES {
            remove_if_there(&side_file_path(path, suffix))?;
        }
        Ok(sync_directory(directory_of(path))?)
    }
}
