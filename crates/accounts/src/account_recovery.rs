//! Account recovery: a secret on paper with which the owner of an account sets a new password when
//! the old one is lost.
//!
//! The secret wraps the key of the account's own vault, as the password does. So everything that
//! the password opened can be opened again after a recovery, including the mail.
//!
//! # Invariants
//! - An account has at most one recovery secret. A new one replaces it, also in an older accounts
//!   file to which the revocation list is applied.
//! - A new password changes no recovery secret: the vault's key stays.

use rusqlite::OptionalExtension;

use crate::accounts::{Accounts, UnlockedAccount};
use crate::credentials::key_wrap::WrapContext;
use crate::credentials::login::{Login, login_of_column};
use crate::credentials::password::Password;
use crate::credentials::password_record::write_next_wrap;
use crate::credentials::recovery_secret::{AccountRecoverySecret, write_recovery_wrap};
use crate::error::{Error, Result};
use crate::id::{AccountId, vault_of_column};
use crate::revocations::Revocation;

impl Accounts {
    /// Creates a recovery secret for an account. An earlier one opens nothing any more.
    pub fn create_recovery_secret(
        &self,
        unlocked: &UnlockedAccount,
    ) -> Result<AccountRecoverySecret> {
        let secret = AccountRecoverySecret::generate();
        let context = WrapContext::Recovery(&unlocked.vault);
        let wrapped_key = secret.wrapping_key().wrap(&unlocked.key, &context);
        let vault = unlocked.vault.clone();
        self.revoke_in(move |db| {
            let sql = "SELECT recovery_number FROM account WHERE vault_id = ?1";
            let number: Option<u32> =
                db.prepare_cached(sql)?.query_row([vault.as_str()], |row| row.get(0)).optional()?;
            let number = number.ok_or(Error::NotFound)? + 1;
            write_recovery_wrap(db, &vault, number, &wrapped_key)?;
            Ok(((), vec![Revocation::RecoverySecret(vault.clone(), number, wrapped_key)]))
        })?;
        Ok(secret)
    }

    /// Whether an account has a recovery secret.
    pub fn has_recovery_secret(&self, account: AccountId) -> Result<bool> {
        self.database.read(|db| {
            let sql = "SELECT 1 FROM account WHERE id = ?1 AND recovery_wrapped_key IS NOT NULL";
            Ok(db.prepare_cached(sql)?.exists([account.0])?)
        })
    }

    /// Opens the account with its recovery secret.
    ///
    /// Returns [`Error::WrongRecoverySecret`] if there is no such account, or it has another secret
    /// or none.
    pub fn unlock_by_recovery(
        &self,
        login: &Login,
        secret: &AccountRecoverySecret,
    ) -> Result<UnlockedAccount> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, login, vault_id, recovery_wrapped_key FROM account
                 WHERE login = ?1 AND recovery_wrapped_key IS NOT NULL",
            )?;
            let mut rows = statement.query([login.as_str()])?;
            let row = rows.next()?.ok_or(Error::WrongRecoverySecret)?;
            let vault = vault_of_column(&row.get::<_, String>(2)?)?;
            let context = WrapContext::Recovery(&vault);
            let key = secret.wrapping_key().unwrap(&row.get(3)?, &context);
            Ok(UnlockedAccount {
                account: AccountId(row.get(0)?),
                login: login_of_column(&row.get::<_, String>(1)?)?,
                key: key.ok_or(Error::WrongRecoverySecret)?,
                vault,
            })
        })
    }

    /// Sets a new password for an unlocked account, whatever its password is. Devices and the
    /// vault's key do not change.
    pub fn reset_password(&self, unlocked: &UnlockedAccount, new: &Password) -> Result<()> {
        let wrap = self.wrap(unlocked, new);
        let (account, vault) = (unlocked.account, unlocked.vault.clone());
        self.revoke_in(move |db| {
            let number = write_next_wrap(db, account, &wrap)?;
            Ok(((), vec![Revocation::Password(vault.clone(), number, wrap)]))
        })
    }
}
