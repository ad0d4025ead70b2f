//! Sub-vaults of an account, such as one for each budget.
//!
//! Their ids are stored here without a key, so that all of them are deleted with the account. Their
//! names are not: a sub-vault's id and key are derived from the account's key and the name. So a
//! client with the key finds a sub-vault by its name, and no one else learns a name from an id.
//!
//! ```text
//! id    HKDF-SHA256(account's key, info "warren sub-vault id 1" name), the first 16 bytes
//! key   HKDF-SHA256(account's key, info "warren sub-vault key 1" id as text)
//! ```

use engine::DatabaseKey;
use rusqlite::params;

use crate::accounts::{Accounts, UnlockedAccount};
use crate::credentials::token::derive;
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};
use crate::limits::SUB_VAULTS_COUNT_MAX;
use crate::schema;

const ID_INFO: &[u8] = b"warren sub-vault id 1";
const KEY_INFO: &[u8] = b"warren sub-vault key 1";

impl UnlockedAccount {
    /// Returns the id of the sub-vault with this name, whether it exists or not.
    pub fn sub_vault_id(&self, name: &str) -> VaultId {
        let id = derive(self.key.as_bytes(), &[ID_INFO, name.as_bytes()].concat());
        VaultId::from_bytes(id.first_chunk().expect("16 of 32 bytes"))
    }

    /// Returns access to one of the account's sub-vaults.
    #[must_use]
    pub fn sub_vault(&self, vault: &VaultId) -> Self {
        let key = derive(self.key.as_bytes(), &[KEY_INFO, vault.as_str().as_bytes()].concat());
        let (account, login) = (self.account, self.login.clone());
        Self { account, login, vault: vault.clone(), key: DatabaseKey::from_bytes(*key) }
    }
}

impl Accounts {
    /// Records a sub-vault before it is created. Does not fail if it is recorded already.
    ///
    /// Returns [`Error::TooManySubVaults`] beyond [`SUB_VAULTS_COUNT_MAX`].
    pub fn add_sub_vault(&self, account: AccountId, vault: &VaultId) -> Result<()> {
        let vault = vault.clone();
        schema::write(&self.database, move |db| {
            let count = "SELECT count(*) FROM sub_vault WHERE account_id = ?1";
            let count: u32 = db.prepare_cached(count)?.query_row([account.0], |row| row.get(0))?;
            if count >= SUB_VAULTS_COUNT_MAX {
                return Err(Error::TooManySubVaults);
            }
            let insert = "INSERT INTO sub_vault (vault_id, account_id) VALUES (?1, ?2)
                          ON CONFLICT (vault_id) DO NOTHING";
            db.prepare_cached(insert)?.execute(params![vault.as_str(), account.0])?;
            Ok(())
        })
    }

    /// Whether the account has this sub-vault.
    pub fn has_sub_vault(&self, account: AccountId, vault: &VaultId) -> Result<bool> {
        self.database.read(|db| {
            let sql = "SELECT 1 FROM sub_vault WHERE vault_id = ?1 AND account_id = ?2";
            Ok(db.prepare_cached(sql)?.exists(params![vault.as_str(), account.0])?)
        })
    }

    /// Returns the account's sub-vaults, in no meaningful order.
    pub fn sub_vaults(&self, account: AccountId) -> Result<Vec<VaultId>> {
        self.database.read(|db| {
            let sql = "SELECT vault_id FROM sub_vault WHERE account_id = ?1 ORDER BY vault_id";
            let mut statement = db.prepare_cached(sql)?;
            let rows = statement
                .query_and_then([account.0], |row| vault_of_column(&row.get::<_, String>(0)?))?;
            rows.collect()
        })
    }

    /// Deletes the record of a sub-vault after it was removed. Does not fail if it is missing.
    pub fn remove_sub_vault(&self, account: AccountId, vault: &VaultId) -> Result<()> {
        let vault = vault.clone();
        schema::write(&self.database, move |db| {
            let sql = "DELETE FROM sub_vault WHERE vault_id = ?1 AND account_id = ?2";
            db.prepare_cached(sql)?.execute(params![vault.as_str(), account.0])?;
            Ok(())
        })
    }
}
