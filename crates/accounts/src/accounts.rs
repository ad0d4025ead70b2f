//! Accounts and their passwords.
//!
//! # Invariants
//! - No state is cached between calls: another process may change the file at any time.
//! - [`Accounts::change_password`] replaces a wrap only if it is still the one that was opened, so
//!   of two concurrent changes one succeeds.
//! - A login without an account costs the same work and gives the same error as a wrong password.
//!
//! # Not here
//! - Limits on password attempts → `server`.
//! - Devices → `devices.rs`. Their names, and all else in a vault → the vault.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Database, DatabaseKey, Databases};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::credentials::kdf::KdfCost;
use crate::credentials::login::{Login, login_of_column};
use crate::credentials::password::Password;
use crate::credentials::password_record::{
    PasswordRecord, PasswordWrappedKey, password_record_from_row,
};
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};
use crate::limits::{self, AccountLimits, DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX};
use crate::revocations::{AppliedRevocations, Revocation, RevocationList, vaults_of};
use crate::schema::{self, to_column};

/// The accounts of one data directory. All calls block. Clones share the open file.
#[derive(Clone)]
pub struct Accounts {
    pub(crate) database: Arc<Database>,
    pub(crate) revocations: RevocationList,
    kdf: KdfCost,
    /// The maximum number of devices of an account that has no limit of its own.
    pub(crate) devices_max: u32,
}

/// An unlocked account: its user has authenticated, so its vault can be opened.
#[derive(Clone, Debug)]
pub struct UnlockedAccount {
    pub account: AccountId,
    pub login: Login,
    pub vault: VaultId,
    pub key: DatabaseKey,
}

/// A summary of an account for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: AccountId,
    pub login: Login,
    pub vault: VaultId,
    pub devices_count: u64,
    pub created_ms: u64,
    pub limits: AccountLimits,
}

impl Accounts {
    /// Opens `accounts.sqlite` in the directory `data`, which is created if it is missing. New
    /// passwords are hashed at the cost `kdf`, others when they are next used.
    pub fn open(databases: &Databases, data: &Path, kdf: KdfCost) -> Result<Self> {
        let database = schema::open(databases, data)?;
        let revocations = RevocationList::new(data);
        let devices_max = DEVICES_COUNT_DEFAULT;
        Ok(Self { database, revocations, kdf, devices_max })
    }

    /// Sets another device limit for accounts that have none of their own.
    #[must_use]
    pub fn with_devices_max(self, devices_max: u32) -> Self {
        Self { devices_max: devices_max.min(DEVICES_COUNT_MAX), ..self }
    }

    /// Creates an account with an id and a key for its vault. The caller must create the vault's
    /// file.
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
            // If another call has just replaced the wrap, that wrap has the new cost, too.
            schema::write(&self.database, move |db| lock.replace_wrap(db, &wrap))?;
        }
        Ok(unlocked)
    }

    /// Sets another password. Devices and the vault's key do not change.
    ///
    /// Returns `Busy` if another call changed or rewrapped the password at the same time.
    pub fn change_password(&self, login: &Login, old: &Password, new: &Password) -> Result<()> {
        let (unlocked, lock) = self.try_password(login, old)?;
        let wrap = self.wrap(&unlocked, new);
        self.revoke_in(move |db| {
            let number = lock.replace_wrap(db, &wrap)?.ok_or(engine::Error::Busy)?;
            Ok(((), vec![Revocation::Password(lock.vault.clone(), number, wrap)]))
        })
    }

    /// Returns all accounts, sorted by login.
    pub fn list(&self) -> Result<Vec<AccountSummary>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SUMMARY} ORDER BY login"))?;
            let rows = statement.query_and_then([], summary)?;
            rows.collect()
        })
    }

    /// Returns the account with this login.
    pub fn find(&self, login: &Login) -> Result<AccountSummary> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SUMMARY} WHERE login = ?1"))?;
            let mut rows = statement.query_and_then([login.as_str()], summary)?;
            rows.next().ok_or(Error::NotFound)?
        })
    }

    /// Gives an account another login if it is free. The password, devices and vault do not change.
    pub fn rename(&self, unlocked: &UnlockedAccount, login: &Login) -> Result<()> {
        let (account, login) = (unlocked.account, login.clone());
        schema::write(&self.database, move |db| {
            let sql = "SELECT 1 FROM account WHERE login = ?1 AND id <> ?2";
            if db.prepare_cached(sql)?.exists(params![login.as_str(), account.0])? {
                return Err(Error::AccountExists);
            }
            // The id of an account that was removed in the meantime is not used again.
            let sql = "UPDATE account SET login = ?2 WHERE id = ?1";
            let renamed = db.prepare_cached(sql)?.execute(params![account.0, login.as_str()])?;
            if renamed == 1 { Ok(()) } else { Err(Error::NotFound) }
        })
    }

    /// Removes the account and its devices. The caller must delete the returned vaults' files, of
    /// which the account's own is the first; they cannot be opened any more.
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

    pub(crate) fn wrap(
        &self,
        unlocked: &UnlockedAccount,
        password: &Password,
    ) -> PasswordWrappedKey {
        PasswordWrappedKey::new(password, &unlocked.key, &unlocked.vault, self.kdf)
    }

    fn password_record(&self, login: &Login) -> Result<Option<PasswordRecord>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, vault_id, kdf_memory_kib, kdf_passes, kdf_salt, wrapped_key, wrap_number
                 FROM account WHERE login = ?1",
            )?;
            statement.query_and_then([login.as_str()], password_record_from_row)?.next().transpose()
        })
    }

    /// Changes an account's own limits and returns the new ones.
    pub fn change_limits(
        &self,
        login: &Login,
        change: impl Fn(&mut AccountLimits) + Send + 'static,
    ) -> Result<AccountLimits> {
        let login = login.clone();
        schema::write(&self.database, move |db| {
            let mut limits = read_limits(db, &login)?;
            change(&mut limits);
            write_limits(db, &login, limits)?;
            Ok(limits)
        })
    }

    /// Applies the directory's revocation list to its accounts file, which may be an older copy.
    /// Writes only if the file lacks a revocation.
    pub fn apply_revocations(&self) -> Result<AppliedRevocations> {
        let list = self.revocations.read()?;
        let damaged_lines = list.damaged_lines().to_vec();
        let mut found = AppliedRevocations { damaged_lines, ..AppliedRevocations::default() };
        let mut missing = Vec::new();
        // The newest comes first: of several passwords with one number, the last in the list
        // counts.
        for revocation in list.in_effect.into_iter().rev() {
            match self.database.read(|db| revocation.is_missing(db)) {
                Ok(true) => missing.push(revocation),
                Ok(false) => {}
                Err(Error::Engine(error)) if error.is_damage() => found.unknown_count += 1,
                Err(error) => return Err(error),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        schema::write(&self.database, move |db| {
            let mut applied = found.clone();
            for revocation in &missing {
                revocation.apply(db, &mut applied)?;
            }
            Ok(applied)
        })
    }

    /// Runs a transaction that revokes access, and returns when the disk has it. The revocations
    /// (the second part of the transaction's result) are appended to the list before the commit,
    /// and are cancelled there if the transaction is rolled back.
    pub(crate) fn revoke_in<T: Send + 'static>(
        &self,
        transaction: impl Fn(&Connection) -> Result<(T, Vec<Revocation>)> + Send + 'static,
    ) -> Result<T> {
        let list = self.revocations.clone();
        // A transaction may run several times before it is committed.
        let listed: Arc<Mutex<Vec<Revocation>>> = Arc::default();
        let listing = Arc::clone(&listed);
        let written = schema::write(&self.database, move |db| {
            let (result, revocations) = transaction(db)?;
            let lines: String = revocations.iter().map(Revocation::to_line).collect();
            listing.lock().unwrap_or_else(PoisonError::into_inner).extend(revocations);
            if !lines.is_empty() {
                list.append(&lines)?;
            }
            Ok(result)
        });
        if written.as_ref().is_err_and(is_rolled_back) {
            let listed = listed.lock().unwrap_or_else(PoisonError::into_inner);
            let lines: String = listed.iter().map(Revocation::to_cancelling_line).collect();
            if !lines.is_empty() {
                // If this fails, too, the next start applies the change, as the caller wanted.
                drop(self.revocations.append(&lines));
            }
        }
        written
    }
}

pub(crate) const SUMMARY: &str = "
    SELECT id, login, vault_id, created_ms,
        (SELECT count(*) FROM device WHERE account_id = account.id),
        messages_max, bytes_max, devices_max, mail_bytes_max
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

/// Inserts an account. Returns `None` if the login is taken.
fn insert(
    db: &Connection,
    login: &Login,
    vault: &VaultId,
    wrap: &PasswordWrappedKey,
    now_ms: u64,
) -> Result<Option<AccountId>> {
    let (memory_kib, passes) = wrap.cost.to_columns();
    let mut statement = db.prepare_cached(
        "INSERT INTO account (
             login, vault_id, created_ms, kdf_memory_kib, kdf_passes, kdf_salt, wrapped_key, set_id
         )
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

fn read_limits(db: &Connection, login: &Login) -> Result<AccountLimits> {
    let sql = format!("SELECT {} FROM account WHERE login = ?1", limits::COLUMNS);
    let mut statement = db.prepare_cached(&sql)?;
    let limits =
        statement.query_row([login.as_str()], |row| limits::from_row(row, 0)).optional()?;
    limits.ok_or(Error::NotFound)
}

fn write_limits(db: &Connection, login: &Login, limits: AccountLimits) -> Result<()> {
    // A limit above SQLite's integers can never be reached.
    let column = |limit: Option<u64>| limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let AccountLimits { messages_max, bytes_max, devices_max, mail_bytes_max } = limits;
    let mut statement = db.prepare_cached(
        "UPDATE account
         SET messages_max = ?2, bytes_max = ?3, devices_max = ?4, mail_bytes_max = ?5
         WHERE login = ?1",
    )?;
    statement.execute(params![
        login.as_str(),
        column(messages_max),
        column(bytes_max),
        devices_max,
        column(mail_bytes_max)
    ])?;
    Ok(())
}

/// Whether a transaction with this error was rolled back and will never be stored.
fn is_rolled_back(error: &Error) -> bool {
    !matches!(error, Error::Engine(engine::Error::Poisoned { .. } | engine::Error::Closed))
}
