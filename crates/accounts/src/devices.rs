//! Devices: each is registered once and then authenticates with its token.
//!
//! A device is registered by the account's password or by another device; a copied file registers
//! itself in this way. Revoking a device also revokes the devices that it registered. Otherwise a
//! thief could keep access after a stolen token is revoked.
//!
//! # Invariants
//! - A device's row is created, read and deleted together with its wrap of the vault's key.
//! - A call that names an account affects only devices of that account.
//!
//! # Not here
//! - The names of devices, and when they were last seen → the vault.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::accounts::{Accounts, UnlockedAccount};
use crate::credentials::key_wrap::{WrapContext, WrappedKey};
use crate::credentials::login::{Login, login_of_column};
use crate::credentials::password::Password;
use crate::credentials::password_record::write_next_wrap;
use crate::credentials::token::{DeviceToken, TokenHash};
use crate::encryption_mode::{self, MessageSet};
use crate::error::{Error, Result};
use crate::id::{AccountId, DeviceId, VaultId, vault_of_column};
use crate::limits::{self, AccountLimits, DEVICES_COUNT_MAX};
use crate::revocations::Revocation;
use crate::schema::{self, to_column};

/// The credentials of a new device. The token is stored nowhere else.
pub struct DeviceCredentials {
    pub device_id: DeviceId,
    pub token: DeviceToken,
}

/// The result of authenticating a token: the device and its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSession {
    pub device_id: DeviceId,
    pub account: AccountId,
    pub login: Login,
    pub vault: VaultId,
    pub limits: AccountLimits,
    pub message_set: MessageSet,
}

/// A device in the list of its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRow {
    pub device_id: DeviceId,
    pub created_ms: u64,
    /// The device whose token registered this one; `None` if the password did.
    pub registered_by: Option<DeviceId>,
}

/// A row to insert.
struct NewDeviceRow {
    id: DeviceId,
    account: AccountId,
    registered_by: Option<DeviceId>,
    token_hash: TokenHash,
    wrapped_key: WrappedKey,
    created_ms: u64,
}

impl Accounts {
    /// Registers a device. Returns [`Error::NotFound`] if the account, or the device that registers
    /// it, does not exist any more.
    pub fn register(
        &self,
        unlocked: &UnlockedAccount,
        registered_by: Option<&DeviceId>,
        now_ms: u64,
    ) -> Result<DeviceCredentials> {
        let token = DeviceToken::generate();
        let device_id = self.register_token(unlocked, &token, registered_by, now_ms)?;
        Ok(DeviceCredentials { device_id, token })
    }

    /// Registers a device with a given token, which may have another form. No other device may have
    /// this token.
    pub fn register_token(
        &self,
        unlocked: &UnlockedAccount,
        token: &DeviceToken,
        registered_by: Option<&DeviceId>,
        now_ms: u64,
    ) -> Result<DeviceId> {
        let id = DeviceId::generate();
        let row = WrapContext::Device(&unlocked.vault, &id);
        let device = NewDeviceRow {
            id: id.clone(),
            account: unlocked.account,
            registered_by: registered_by.cloned(),
            token_hash: token.hash(),
            wrapped_key: token.wrapping_key().wrap(&unlocked.key, &row),
            created_ms: now_ms,
        };
        let devices_max = self.devices_max;
        schema::write(&self.database, move |db| {
            check_registration(db, &device, devices_max)?;
            insert(db, &device)
        })?;
        Ok(id)
    }

    /// Authenticates a token. This is one index lookup and needs no key.
    pub fn authenticate(&self, token: &DeviceToken) -> Result<DeviceSession> {
        self.find_token(token, session)
    }

    /// Returns the message set of a device, or `None` if the device does not exist any more.
    pub fn message_set(&self, device: &DeviceId) -> Result<Option<MessageSet>> {
        self.database.read(|db| encryption_mode::message_set(db, device))
    }

    /// Unlocks the account of a token.
    pub fn unlock_by_token(&self, token: &DeviceToken) -> Result<UnlockedAccount> {
        let (session, wrapped_key): (DeviceSession, WrappedKey) =
            self.find_token(token, |row| Ok((session(row)?, row.get(4)?)))?;
        let DeviceSession { device_id, account, login, vault, .. } = session;
        let key = token
            .wrapping_key()
            .unwrap(&wrapped_key, &WrapContext::Device(&vault, &device_id))
            .ok_or(Error::Damaged { what: "a device's wrapped key" })?;
        Ok(UnlockedAccount { account, login, vault, key })
    }

    /// Returns the account's devices in order of registration.
    pub fn devices(&self, account: AccountId) -> Result<Vec<DeviceRow>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, created_ms, registered_by FROM device WHERE account_id = ?1
                 ORDER BY rowid",
            )?;
            let rows = statement.query_and_then([account.0], |row| {
                Ok(DeviceRow {
                    device_id: device_of_column(&row.get::<_, String>(0)?)?,
                    created_ms: row.get::<_, i64>(1)?.cast_unsigned(),
                    registered_by: row
                        .get::<_, Option<String>>(2)?
                        .map(|text| device_of_column(&text))
                        .transpose()?,
                })
            })?;
            rows.collect()
        })
    }

    /// Sets another password for an unlocked account, and revokes all devices except `staying`, if
    /// given. Returns the revoked devices.
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
            let number = write_next_wrap(db, account, &wrap)?;
            let revoked = revoke_others(db, account, staying.as_ref())?;
            let mut revocations = vec![Revocation::Password(vault.clone(), number, wrap)];
            revocations.extend(revoked.iter().cloned().map(Revocation::Device));
            Ok((revoked, revocations))
        })
    }

    /// Revokes a device and all that it registered, directly or indirectly. Returns all of them,
    /// the named one first.
    pub fn revoke(&self, account: AccountId, device: &DeviceId) -> Result<Vec<DeviceId>> {
        let device = device.clone();
        self.revoke_in(move |db| {
            let revoked = with_registered(db, account, &device)?;
            if revoked.is_empty() {
                return Err(Error::NotFound);
            }
            // The foreign key deletes the others.
            db.prepare_cached("DELETE FROM device WHERE account_id = ?1 AND id = ?2")?
                .execute(params![account.0, device.as_str()])?;
            let revocations = revoked.iter().cloned().map(Revocation::Device).collect();
            Ok((revoked, revocations))
        })
    }

    fn find_token<T>(
        &self,
        token: &DeviceToken,
        read_row: impl FnOnce(&SqlRow<'_>) -> Result<T>,
    ) -> Result<T> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT device.id, account.id, login, vault_id, device.wrapped_key, {}, {}
                 FROM device JOIN account ON account.id = account_id WHERE token_hash = ?1",
                limits::COLUMNS,
                MessageSet::COLUMNS
            ))?;
            let mut rows = statement.query([token.hash()])?;
            read_row(rows.next()?.ok_or(Error::InvalidToken)?)
        })
    }
}

fn session(row: &SqlRow<'_>) -> Result<DeviceSession> {
    Ok(DeviceSession {
        device_id: device_of_column(&row.get::<_, String>(0)?)?,
        account: AccountId(row.get(1)?),
        login: login_of_column(&row.get::<_, String>(2)?)?,
        vault: vault_of_column(&row.get::<_, String>(3)?)?,
        limits: limits::from_row(row, 5)?,
        message_set: MessageSet::from_row(row, 5 + limits::COLUMNS_COUNT)?,
    })
}

/// Checks whether a device can be registered. `devices_max` applies to accounts without a limit of
/// their own.
fn check_registration(db: &Connection, device: &NewDeviceRow, devices_max: u32) -> Result<()> {
    let found: Option<(u32, Option<u32>)> = db
        .prepare_cached(
            "SELECT (SELECT count(*) FROM device WHERE account_id = ?1), devices_max
             FROM account WHERE id = ?1",
        )?
        .query_row([device.account.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (devices_count, of_account) = found.ok_or(Error::NotFound)?;
    let devices_max = of_account.unwrap_or(devices_max).min(DEVICES_COUNT_MAX);
    if devices_count >= devices_max {
        return Err(Error::TooManyDevices { devices_max });
    }
    let Some(registrar) = &device.registered_by else { return Ok(()) };
    let is_there = db
        .prepare_cached("SELECT 1 FROM device WHERE account_id = ?1 AND id = ?2")?
        .exists(params![device.account.0, registrar.as_str()])?;
    if is_there { Ok(()) } else { Err(Error::NotFound) }
}

fn insert(db: &Connection, device: &NewDeviceRow) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO device
             (id, account_id, registered_by, created_ms, token_hash, wrapped_key, in_e2ee_set)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, e2ee_vault_id IS NOT NULL FROM account WHERE id = ?2",
    )?
    .execute(params![
        device.id.as_str(),
        device.account.0,
        device.registered_by.as_ref().map(DeviceId::as_str),
        to_column(device.created_ms),
        device.token_hash,
        device.wrapped_key
    ])?;
    Ok(())
}

/// Revokes all devices except `staying`, if given, which then counts as registered by the password.
fn revoke_others(
    db: &Connection,
    account: AccountId,
    staying: Option<&DeviceId>,
) -> Result<Vec<DeviceId>> {
    // No device has an empty id.
    let staying = staying.map_or("", DeviceId::as_str);
    let kept = "UPDATE device SET registered_by = NULL WHERE account_id = ?1 AND id = ?2";
    db.prepare_cached(kept)?.execute(params![account.0, staying])?;
    let others = "SELECT id FROM device WHERE account_id = ?1 AND id <> ?2";
    let mut others = db.prepare_cached(others)?;
    let revoked = others.query_and_then(params![account.0, staying], |row| {
        device_of_column(&row.get::<_, String>(0)?)
    })?;
    let revoked = revoked.collect::<Result<_>>()?;
    let revoke = "DELETE FROM device WHERE account_id = ?1 AND id <> ?2";
    db.prepare_cached(revoke)?.execute(params![account.0, staying])?;
    Ok(revoked)
}

/// Returns the device and all that it registered, directly or indirectly. The list is empty if the
/// device does not belong to the account.
fn with_registered(
    db: &Connection,
    account: AccountId,
    device: &DeviceId,
) -> Result<Vec<DeviceId>> {
    let mut statement = db.prepare_cached(
        "WITH RECURSIVE revoked (id) AS (
             SELECT id FROM device WHERE account_id = ?1 AND id = ?2
             UNION ALL
             SELECT device.id
             FROM revoked JOIN device ON account_id = ?1 AND registered_by = revoked.id
         )
         SELECT id FROM revoked",
    )?;
    let rows = statement.query_and_then(params![account.0, device.as_str()], |row| {
        device_of_column(&row.get::<_, String>(0)?)
    })?;
    rows.collect()
}

fn device_of_column(text: &str) -> Result<DeviceId> {
    text.parse().or(Err(Error::Damaged { what: "a device's name" }))
}
