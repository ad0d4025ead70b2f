//! Further vaults of an account, each for one thing of many: a budget, say.
//!
//! Which there are is known here without a key, so that all of them go when the account goes. What
//! they are called is not: a vault's id and key come from the account's key and the name, so who
//! has the key finds a vault by its name, and nobody else learns a name from an id.
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
    /// The vault of this name, whether it is there or not.
    pub fn sub_vault_id(&self, name: &str) -> VaultId {
        let id = derive(self.key.as_bytes(), &[ID_INFO, name.as_bytes()].concat());
        VaultId::from_bytes(id.first_chunk().expect("16 of 32 bytes"))
    }

    /// Who may open one of the account's further vaults.
    #[must_use]
    pub fn sub_vault(&self, vault: &VaultId) -> Self {
        let key = derive(self.key.as_bytes(), &[KEY_INFO, vault.as_str().as_bytes()].concat());
        let (account, login) = (self.account, self.login.clone());
        Self { account, login, vault: vault.clone(), key: DatabaseKey::from_bytes(*key) }
    }
}

impl Accounts {
    /// Notes a sub-vault, before it is made. One that is noted already is no error.
    ///
    /// [`Error::TooManySubVaults`] past [`SUB_VAULTS_COUNT_MAX`].
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

    /// The account's further vaults, in no order that says anything.
    pub fn sub_vaults(&self, account: AccountId) -> Result<Vec<VaultId>> {
        self.database.read(|db| {
            let sql = "SELECT vault_id FROM sub_vault WHERE account_id = ?1 ORDER BY vault_id";
            let mut statement = db.prepare_cached(sql)?;
            let rows = statement
                .query_and_then([account.0], |row| vault_of_column(&row.get::<_, String>(0)?))?;
            rows.collect()
        })
    }

    /// Forgets a sub-vault, after it was removed. One that is not there is no error.
    pub fn remove_sub_vault(&self, account: AccountId, vault: &VaultId) -> Result<()> {
        let vault = vault.clone();
        schema::write(&self.database, move |db| {
            let sql = "DELETE FROM sub_vault WHERE vault_id = ?1 AND account_id = ?2";
            db.prepare_cached(sql)?.execute(params![vault.as_str(), account.0])?;
            Ok(())
        })
    }
}
