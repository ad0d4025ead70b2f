//! Password records: the vault's key in an account's row, wrapped under the password, with the
//! number of that wrap.
//!
//! # Not here
//! - The format of a wrap → `key_wrap.rs`. Checks before a password changes → `accounts.rs`.

use engine::DatabaseKey;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::kdf::{KdfCost, SALT_BYTES};
use super::key_wrap::{WrapContext, WrappedKey};
use super::password::Password;
use super::random;
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};

/// A key wrapped under a password, with the parameters that turn the password into the wrapping
/// key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PasswordWrappedKey {
    pub(crate) cost: KdfCost,
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) wrapped_key: WrappedKey,
}

/// The record that a login is checked against.
pub(crate) struct PasswordRecord {
    pub(crate) account: AccountId,
    pub(crate) vault: VaultId,
    pub(crate) wrap: PasswordWrappedKey,
    /// The number of the account's wrap, from 0.
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
    /// Creates a record that replaces a missing account's. Opening it would require forging a tag
    /// under a key that depends on a salt drawn just now.
    pub(crate) fn dummy(cost: KdfCost) -> Self {
        let wrap = PasswordWrappedKey { cost, salt: random::bytes(), wrapped_key: random::bytes() };
        Self { account: AccountId(0), vault: VaultId::generate(), wrap, wrap_number: 0 }
    }

    /// Stores another wrap and returns its number. If the account's wrap has changed in the
    /// meantime, stores no wrap and returns `None`.
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

/// Returns the number of an account's wrap, or `None` if the account does not exist.
fn wrap_number(db: &Connection, account: AccountId) -> Result<Option<u32>> {
    let mut statement = db.prepare_cached("SELECT wrap_number FROM account WHERE id = ?1")?;
    Ok(statement.query_row([account.0], |row| row.get(0)).optional()?)
}

/// Stores another wrap, whatever the account's wrap is, and returns its number.
pub(crate) fn write_next_wrap(
    db: &Connection,
    account: AccountId,
    wrap: &PasswordWrappedKey,
) -> Result<u32> {
    let number = wrap_number(db, account)?.ok_or(Error::NotFound)? + 1;
    write_wrap(db, account, wrap, number)?;
    Ok(number)
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
