//! Accounts and their passwords.
//!
//! # Invariants
//! - Nothing is remembered from one call to the next: another process may change the file at any
//!   time.
//! - A wrap is replaced only if it is still the one that was opened, so of two changes at once one
//!   wins.
//! - A login without an account costs the same work and gives the same error as a wrong password.
//!
//! # Not here
//! - How often a password may be tried → `server`.
//! - Devices → `devices.rs`. Their names, and everything else in a vault → the vault.

use std::path::Path;
use std::sync::Arc;

use engine::{Database, DatabaseKey, Databases};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::devices::{self, DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX};
use crate::error::{Error, Result};
use crate::id::{AccountId, DeviceId, VaultId};
use crate::kdf::{KdfCost, SALT_BYTES};
use crate::key_wrap::{WrapContext, WrappedKey};
use crate::limits::{self, AccountLimits};
use crate::login::Login;
use crate::password::Password;
use crate::random;
use crate::revocations::{Revocation, RevocationList, vaults_of};
use crate::schema::{self, to_column};

/// The accounts of one data directory. All calls block.
pub struct Accounts {
    pub(crate) database: Arc<Database>,
    pub(crate) revocations: RevocationList,
    kdf: KdfCost,
    /// Devices of an account that has no limit of its own.
    pub(crate) devices_max: u32,
}

/// An account whose vault can be opened, because its user has proven who they are.
#[derive(Clone, Debug)]
pub struct UnlockedAccount {
    pub account: AccountId,
    pub login: Login,
    pub vault: VaultId,
    pub key: DatabaseKey,
}

/// An account, as its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: AccountId,
    pub login: Login,
    pub vault: VaultId,
    pub devices_count: u64,
    pub created_ms: u64,
    pub limits: AccountLimits,
}

/// A key wrapped under a password, and what turns the password into the wrapping key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PasswordWrappedKey {
    pub(crate) cost: KdfCost,
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) wrapped_key: WrappedKey,
}

/// What a login is checked against.
struct PasswordRecord {
    account: AccountId,
    vault: VaultId,
    wrap: PasswordWrappedKey,
    /// Counts the account's wraps, from 0.
    wrap_number: u32,
}

impl Accounts {
    /// Opens `accounts.sqlite` in the directory `data`, which is made if it is not there. New passwords are hashed at
    /// the cost `kdf`, others when they are next used.
    pub fn open(databases: &Databases, data: &Path, kdf: KdfCost) -> Result<Self> {
        let database = schema::open(databases, data)?;
        let revocations = RevocationList::new(data);
        let devices_max = DEVICES_COUNT_DEFAULT;
        Ok(Self { database, revocations, kdf, devices_max })
    }

    /// With another limit for the devices of accounts that have none of their own.
    #[must_use]
    pub fn with_devices_max(self, devices_max: u32) -> Self {
        Self { devices_max: devices_max.min(DEVICES_COUNT_MAX), ..self }
    }

    /// Makes an account, with a name and a key for its vault. The vault's file is the caller's to
    /// create.
    pub fn add(&self, login: &Login, password: &Password, now_ms: u64) -> Result<UnlockedAccount> {
        if self.password_record(login)?.is_some() {
            return Err(Error::AccountExists);
        }
        let (vault, key) = (VaultId::generate(), DatabaseKey::generate());
        let wrap = PasswordWrappedKey::new(password, &key, &vault, self.kdf);
        let (row_login, row_vault) = (login.clone(), vault.clone());
        let account = schema::write(&self.database, move |db| {
            insert(db, &row_login, &row_vault, &wrap, now_ms)?.ok_or(Error::AccountExists)
        })?;
        Ok(UnlockedAccount { account, login: login.clone(), vault, key })
    }

    /// Opens the account with its password.
    pub fn unlock(&self, login: &Login, password: &Password) -> Result<UnlockedAccount> {
        let (unlocked, lock) = self.try_password(login, password)?;
        if lock.wrap.cost != self.kdf {
            let wrap = self.wrap(&unlocked, password);
            // If another call has just replaced the wrap, that one is new too.
            schema::write(&self.database, move |db| lock.replace_wrap(db, &wrap))?;
        }
        Ok(unlocked)
    }

    /// Sets another password. Devices, and the vault's key, stay as they are.
    ///
    /// `Busy` if the password was changed or rewrapped by another call meanwhile.
    pub fn change_password(&self, login: &Login, old: &Password, new: &Password) -> Result<()> {
        let (unlocked, lock) = self.try_password(login, old)?;
        let wrap = self.wrap(&unlocked, new);
        self.revoke_in(move |db| {
            let number = lock.replace_wrap(db, &wrap)?.ok_or(engine::Error::Busy)?;
            Ok(((), vec![Revocation::Password(lock.vault.clone(), number, wrap)]))
        })
    }

    /// Sets another password for an account that has been unlocked, and revokes every device but
    /// the one that stays, if any does. Returns the revoked.
    pub fn replace_password(
        &self,
        unlocked: &UnlockedAccount,
        new: &Password,
        staying: Option<&DeviceId>,
    ) -> Result<Vec<DeviceId>> {
        let wrap = self.wrap(unlocked, new);
        let (account, vault) = (unlocked.account, unlocked.vault.clone());
        let staying = staying.cloned();
        self.revoke_in(move |db| {
            let number = wrap_number(db, account)?.ok_or(Error::NotFound)? + 1;
            write_wrap(db, account, &wrap, number)?;
            let revoked = devices::revoke_others(db, account, staying.as_ref())?;
            let mut revocations = vec![Revocation::Password(vault.clone(), number, wrap)];
            revocations.extend(revoked.iter().cloned().map(Revocation::Client));
            Ok((revoked, revocations))
        })
    }

    /// Every account, by login.
    pub fn list(&self) -> Result<Vec<AccountSummary>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SUMMARY} ORDER BY login"))?;
            let rows = statement.query_and_then([], summary)?;
            rows.collect()
        })
    }

    /// One account.
    pub fn find(&self, login: &Login) -> Result<AccountSummary> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SUMMARY} WHERE login = ?1"))?;
            let mut rows = statement.query_and_then([login.as_str()], summary)?;
            rows.next().ok_or(Error::NotFound)?
        })
    }

    /// Gives an account another login, if nobody has that one. Password, devices and vault stay.
    pub fn rename(&self, unlocked: &UnlockedAccount, login: &Login) -> Result<()> {
        let (account, login) = (unlocked.account, login.clone());
        schema::write(&self.database, move |db| {
            let sql = "SELECT 1 FROM account WHERE login = ?1 AND id <> ?2";
            if db.prepare_cached(sql)?.exists(params![login.as_str(), account.0])? {
                return Err(Error::AccountExists);
            }
            // The id of an account that was removed meanwhile is nobody's.
            let sql = "UPDATE account SET login = ?2 WHERE id = ?1";
            let renamed = db.prepare_cached(sql)?.execute(params![account.0, login.as_str()])?;
            if renamed == 1 { Ok(()) } else { Err(Error::NotFound) }
        })
    }

    /// Removes the account and its devices. The vaults' files are the caller's to delete, the
    /// account's own first in the list; nothing opens them any more.
    pub fn remove(&self, login: &Login) -> Result<Vec<VaultId>> {
        let login = login.clone();
        self.revoke_in(move |db| {
            let vaults = vaults_of(db, "login", login.as_str())?;
            let revocation = Revocation::Account(vaults.first().ok_or(Error::NotFound)?.clone());
            db.prepare_cached("DELETE FROM account WHERE login = ?1")?.execute([login.as_str()])?;
            Ok((vaults, vec![revocation]))
        })
    }

    fn try_password(
        &self,
        login: &Login,
        password: &Password,
    ) -> Result<(UnlockedAccount, PasswordRecord)> {
        let lock = self.password_record(login)?.unwrap_or_else(|| PasswordRecord::dummy(self.kdf));
        let key = lock.wrap.open(password, &lock.vault).ok_or(Error::WrongPassword)?;
        let (account, vault) = (lock.account, lock.vault.clone());
        Ok((UnlockedAccount { account, login: login.clone(), vault, key }, lock))
    }

    fn wrap(&self, unlocked: &UnlockedAccount, password: &Password) -> PasswordWrappedKey {
        PasswordWrappedKey::new(password, &unlocked.key, &unlocked.vault, self.kdf)
    }

    fn password_record(&self, login: &Login) -> Result<Option<PasswordRecord>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, vault, memory_kib, passes, salt, wrapped_key, wrap_number
                 FROM account WHERE login = ?1",
            )?;
            statement.query_and_then([login.as_str()], password_record_from_row)?.next().transpose()
        })
    }
}

impl PasswordWrappedKey {
    fn new(password: &Password, key: &DatabaseKey, vault: &VaultId, cost: KdfCost) -> Self {
        let salt = random::bytes();
        let wrapped_key =
            cost.wrapping_key(password, &salt).wrap(key, &WrapContext::Account(vault));
        Self { cost, salt, wrapped_key }
    }

    fn open(&self, password: &Password, vault: &VaultId) -> Option<DatabaseKey> {
        let wrapping_key = self.cost.wrapping_key(password, &self.salt);
        wrapping_key.unwrap(&self.wrapped_key, &WrapContext::Account(vault))
    }
}

impl PasswordRecord {
    /// Takes the place of an account that is not there. To open it is to forge a tag under a key
    /// that depends on a salt drawn a moment ago.
    fn dummy(cost: KdfCost) -> Self {
        let wrap = PasswordWrappedKey { cost, salt: random::bytes(), wrapped_key: random::bytes() };
        Self { account: AccountId(0), vault: VaultId::generate(), wrap, wrap_number: 0 }
    }

    /// Stores another wrap, and returns its number; `None`, and nothing done, if the account has
    /// another one by now.
    fn replace_wrap(&self, db: &Connection, new: &PasswordWrappedKey) -> Result<Option<u32>> {
        if wrap_number(db, self.account)? != Some(self.wrap_number) {
            return Ok(None);
        }
        let number = self.wrap_number + 1;
        write_wrap(db, self.account, new, number)?;
        Ok(Some(number))
    }
}

pub(crate) const SUMMARY: &str = "
    SELECT id, login, vault, created_ms, (SELECT count(*) FROM client WHERE account_id = account.id),
        messages_max, bytes_max, clients_max
    FROM account";

pub(crate) fn summary(row: &SqlRow<'_>) -> Result<AccountSummary> {
    Ok(AccountSummary {
        account: AccountId(row.get(0)?),
        login: login_of_column(&row.get::<_, String>(1)?)?,
        vault: vault_of_column(&row.get::<_, String>(2)?)?,
        created_ms: row.get::<_, i64>(3)?.cast_unsigned(),
        devices_count: row.get::<_, i64>(4)?.cast_unsigned(),
        limits: limits::from_row(row, 5)?,
    })
}

fn password_record_from_row(row: &SqlRow<'_>) -> Result<PasswordRecord> {
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

/// `None` if the login is taken.
fn insert(
    db: &Connection,
    login: &Login,
    vault: &VaultId,
    wrap: &PasswordWrappedKey,
    now_ms: u64,
) -> Result<Option<AccountId>> {
    let (memory_kib, passes) = wrap.cost.to_columns();
    let mut statement = db.prepare_cached(
        "INSERT INTO account (login, vault, created_ms, memory_kib, passes, salt, wrapped_key, set_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, random()) ON CONFLICT (login) DO NOTHING RETURNING id",
    )?;
    let columns = params![
        login.as_str(),
        vault.as_str(),
        to_column(now_ms),
        memory_kib,
        passes,
        wrap.salt,
        wrap.wrapped_key
    ];
    Ok(statement.query_row(columns, |row| row.get(0)).optional()?.map(AccountId))
}

/// `None` if there is no such account.
fn wrap_number(db: &Connection, account: AccountId) -> Result<Option<u32>> {
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
         SET memory_kib = ?2, passes = ?3, salt = ?4, wrapped_key = ?5, wrap_number = ?6
         WHERE id = ?1",
    )?;
    let columns = params![account.0, memory_kib, passes, wrap.salt, wrap.wrapped_key, number];
    statement.execute(columns)?;
    Ok(())
}

pub(crate) fn login_of_column(text: &str) -> Result<Login> {
    Login::parse(text).or(Err(Error::Damaged { what: "a login" }))
}

pub(crate) fn vault_of_column(text: &str) -> Result<VaultId> {
    text.parse().or(Err(Error::Damaged { what: "a vault's name" }))
}
