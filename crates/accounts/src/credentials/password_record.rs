//! What an account's row says of its password: the vault's key, wrapped under it, and which wrap
//! that is.
//!
//! # Not here
//! - What a wrap is made of → `key_wrap.rs`. Who may change a password → `accounts.rs`.

use engine::DatabaseKey;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::kdf::{KdfCost, SALT_BYTES};
use super::key_wrap::{WrapContext, WrappedKey};
use super::password::Password;
use super::random;
use crate::error::Result;
use crate::id::{AccountId, VaultId, vault_of_column};

/// A key wrapped under a password, and what turns the password into the wrapping key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PasswordWrappedKey {
    pub(crate) cost: KdfCost,
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) wrapped_key: WrappedKey,
}

/// What a login is checked against.
pub(crate) struct PasswordRecord {
    pub(crate) account: AccountId,
    pub(crate) vault: VaultId,
    pub(crate) wrap: PasswordWrappedKey,
    /// Counts the account's wraps, from 0.
    wrap_number: u32,
}

impl PasswordWrappedKey {
    pub(crate) fn new(
        password: &Password,
        key: &DatabaseKey,
        vault: &VaultId,
        cost: KdfCost,
    ) -> Self {
        let salt = random::bytes();
        let wrapped_key =
            cost.wrapping_key(password, &salt).wrap(key, &WrapContext::Account(vault));
        Self { cost, salt, wrapped_key }
    }

    pub(crate) fn open(&self, password: &Password, vault: &VaultId) -> Option<DatabaseKey> {
        let wrapping_key = self.cost.wrapping_key(password, &self.salt);
        wrapping_key.unwrap(&self.wrapped_key, &WrapContext::Account(vault))
    }
}

impl PasswordRecord {
    /// Takes the place of an account that is not there. To open it is to forge a tag under a key
    /// that depends on a salt drawn a moment ago.
    pub(crate) fn dummy(cost: KdfCost) -> Self {
        let wrap = PasswordWrappedKey { cost, salt: random::bytes(), wrapped_key: random::bytes() };
        Self { account: AccountId(0), vault: VaultId::generate(), wrap, wrap_number: 0 }
    }

    /// Stores another wrap, and returns its number; `None`, and nothing done, if the account has
    /// another one by now.
    pub(crate) fn replace_wrap(
        &self,
        db: &Connection,
        new: &PasswordWrappedKey,
    ) -> Result<Option<u32>> {
        if wrap_number(db, self.account)? != Some(self.wrap_number) {
            return Ok(None);
        }
        let number = self.wrap_number + 1;
        write_wrap(db, self.account, new, number)?;
        Ok(Some(number))
    }
}

pub(crate) fn password_record_from_row(row: &SqlRow<'_>) -> Result<PasswordRecord> {
    Ok(PasswordRecord {
        account: AccountId(row.get(0)?),
        vault: vault_of_column(&row.get::<_, String>(1)?)?,
        wrap: PasswordWrappedKey {
            cost: KdfCost::from_columns(row.get(2)?, row.get(3)?)?,
            salt: row.get(4)?,
            wrapped_key: row.get(5)?,
        },
        wrap_number: row.get(6)?,
    })
}

/// `None` if there is no such account.
pub(crate) fn wrap_number(db: &Connection, account: AccountId) -> Result<Option<u32>> {
    let mut statement = db.prepare_cached("SELECT wrap_number FROM account WHERE id = ?1")?;
    Ok(statement.query_row([account.0], |row| row.get(0)).optional()?)
}

pub(crate) fn write_wrap(
    db: &Connection,
    account: AccountId,
    wrap: &PasswordWrappedKey,
    number: u32,
) -> Result<()> {
    let (memory_kib, passes) = wrap.cost.to_columns();
    let mut statement = db.prepare_cached(
        "UPDATE account
         SET kdf_memory_kib = ?2, kdf_passes = ?3, kdf_salt = ?4, wrapped_key = ?5,
             wrap_number = ?6
         WHERE id = ?1",
    )?;
    let columns = params![account.0, memory_kib, passes, wrap.salt, wrap.wrapped_key, number];
    statement.execute(columns)?;
    Ok(())
}
