//! Mail vaults: the vault with an account's mail.
//!
//! An account's mail vault is the sub-vault named `mail vault`, so whoever can open the account's own
//! vault can open it, and no key is stored for it. But it holds mail instead of synced messages. So
//! it is recorded in a table of its own: code that opens all sub-vaults of an account does not meet
//! it.
//!
//! # Invariants
//! - Only an account with a recorded mail vault has mail addresses.
//! - `restores_count` never decreases while the file is in use. A mail vault that has seen fewer
//!   restores comes from a backup (Format 24).
//!
//! # Not here
//! - Addresses → `mail_addresses.rs`. The tables in a mail vault → the crate that opens it.

use rusqlite::params;

use crate::accounts::{Accounts, UnlockedAccount};
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};
use crate::schema;

/// The name of the sub-vault for an account's mail.
const MAIL_VAULT_NAME: &str = "mail vault";

/// The record of an account's mail vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailVaultRow {
    pub vault: VaultId,
    /// The number of restores since the mail vault was recorded.
    pub restores_count: u64,
    /// The key to which deliveries for the mail vault are sealed.
    pub public_key: Vec<u8>,
}

impl UnlockedAccount {
    /// Returns access to the account's mail vault, whether it exists or not. `self` must be access
    /// to the account's own vault.
    #[must_use]
    pub fn mail_vault(&self) -> Self {
        self.sub_vault(&self.sub_vault_id(MAIL_VAULT_NAME))
    }
}

impl Accounts {
    /// Records the account's mail vault before it is created. If it is recorded already, only its
    /// public key is replaced. `mail` is access to it.
    ///
    /// Returns [`Error::NotFound`] if the account was removed in the meantime.
    pub fn record_mail_vault(&self, mail: &UnlockedAccount, public_key: &[u8]) -> Result<()> {
        let (account, vault) = (mail.account, mail.vault.clone());
        let public_key = public_key.to_vec();
        schema::write(&self.database, move |db| {
            let sql = "SELECT 1 FROM account WHERE id = ?1";
            if !db.prepare_cached(sql)?.exists([account.0])? {
                return Err(Error::NotFound);
            }
            let sql = "INSERT INTO mail_vault (account_id, vault_id, public_key)
                       VALUES (?1, ?2, ?3)
                       ON CONFLICT (account_id) DO UPDATE SET public_key = excluded.public_key";
            let columns = params![account.0, vault.as_str(), public_key];
            db.prepare_cached(sql)?.execute(columns)?;
            Ok(())
        })
    }

    /// Returns the record of the account's mail vault, or `None` if it has none.
    pub fn mail_vault(&self, account: AccountId) -> Result<Option<MailVaultRow>> {
        self.database.read(|db| {
            let sql = "SELECT vault_id, restores_count, public_key FROM mail_vault
                       WHERE account_id = ?1";
            let mut statement = db.prepare_cached(sql)?;
            let mut rows = statement.query_and_then([account.0], |row| {
                Ok(MailVaultRow {
                    vault: vault_of_column(&row.get::<_, String>(0)?)?,
                    restores_count: row.get::<_, i64>(1)?.cast_unsigned(),
                    public_key: row.get(2)?,
                })
            })?;
            rows.next().transpose()
        })
    }

    /// Records that all mail vaults were restored from a backup.
    pub fn record_mail_restore(&self) -> Result<()> {
        schema::write(&self.database, |db| {
            let sql = "UPDATE mail_vault SET restores_count = restores_count + 1";
            db.prepare_cached(sql)?.execute([])?;
            Ok(())
        })
    }
}
