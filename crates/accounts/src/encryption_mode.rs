//! The encryption mode of an account's messages: plain or end-to-end encrypted, and the change.
//!
//! ```text
//! undecided ──first push──► plain ──enable──► end-to-end encrypted: in a sub-vault, the e2ee set
//!              └──────────► end-to-end encrypted, in the account's own vault
//! ```
//! An account that enables end-to-end encryption gets a second, empty set of messages. Devices move
//! to it one by one, once they have all messages of the plain set. The plain set accepts no more
//! messages, and is cleared when no device reads it any more.
//!
//! # Invariants
//! - A decided encryption mode changes at most once, from plain to end-to-end encrypted.
//! - Devices that register later are in the e2ee set from the beginning.
//! - A set keeps the id that it got at its creation. If a backup from before the e2ee set is
//!   restored and the account creates an e2ee set again, the two sets have different ids, though
//!   they have the same vault.
//!
//! # Not here
//! - Checks whether a device has all messages, and the clearing → `server`.

use crdt::{EncryptionMode, KeyId};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::accounts::{Accounts, UnlockedAccount};
use crate::error::{Error, Result};
use crate::id::{AccountId, DeviceId, VaultId, vault_of_column};
use crate::schema;

/// The name of the sub-vault for an account's e2ee set. No budget can have it, because budgets'
/// names are UUIDs.
const E2EE_SET_NAME: &str = "e2ee messages";

/// The set of messages that a device uses, and its encryption mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSet {
    /// The account's encryption mode: that of the e2ee set, if there is one.
    pub encryption_mode: Option<EncryptionMode>,
    /// The sub-vault with the messages, if this device is in the e2ee set.
    pub e2ee_vault: Option<VaultId>,
    /// Whether the account's own vault still holds plain messages while there is an e2ee set.
    pub has_plaintext: bool,
    /// The id of the set that the device reads.
    pub id: u64,
}

impl MessageSet {
    /// Whether the device still reads the plain set of an account that has an e2ee set.
    #[must_use]
    pub fn is_in_plain(&self) -> bool {
        self.has_plaintext && self.e2ee_vault.is_none()
    }

    pub(crate) const COLUMNS: &str =
        "e2ee_key_id, iif(in_e2ee_set, e2ee_vault_id, NULL), has_plaintext,
        coalesce(iif(in_e2ee_set, e2ee_set_id, NULL), set_id)";

    /// Reads [`Self::COLUMNS`], the first of which is column number `first`.
    pub(crate) fn from_row(row: &SqlRow<'_>, first: usize) -> Result<Self> {
        let e2ee_vault = row.get::<_, Option<String>>(first + 1)?;
        Ok(Self {
            encryption_mode: mode_of_column(row.get(first)?)?,
            e2ee_vault: e2ee_vault.map(|text| vault_of_column(&text)).transpose()?,
            has_plaintext: row.get(first + 2)?,
            id: row.get::<_, i64>(first + 3)?.cast_unsigned(),
        })
    }
}

impl UnlockedAccount {
    /// Returns access to the vault that holds a device's messages.
    #[must_use]
    pub fn message_vault(&self, set: &MessageSet) -> Self {
        set.e2ee_vault.as_ref().map_or_else(|| self.clone(), |vault| self.sub_vault(vault))
    }
}

impl Accounts {
    /// Returns the encryption mode of the account. If it was undecided, it becomes `wanted`.
    pub fn fix_encryption_mode(
        &self,
        account: AccountId,
        wanted: EncryptionMode,
    ) -> Result<EncryptionMode> {
        schema::write(&self.database, move |db| {
            let sql = "UPDATE account SET e2ee_key_id = ?2
                       WHERE id = ?1 AND e2ee_key_id IS NULL";
            db.prepare_cached(sql)?.execute(params![account.0, wanted.as_bytes()])?;
            encryption_mode(db, account)?.ok_or(Error::NotFound)
        })
    }

    /// Returns the encryption mode of the account; `None` if it is undecided.
    pub fn encryption_mode(&self, account: AccountId) -> Result<Option<EncryptionMode>> {
        self.database.read(|db| encryption_mode(db, account))
    }

    /// Moves a device into the account's e2ee set, which is created if it is missing. Returns the
    /// device's new message set. Returns [`Error::KeyMismatch`] if the account's messages are
    /// sealed with another key.
    ///
    /// The device must have all messages of the plain set or have left it, unless there is none.
    pub fn enable_e2ee(
        &self,
        unlocked: &UnlockedAccount,
        device: &DeviceId,
        key: KeyId,
    ) -> Result<MessageSet> {
        let (account, device) = (unlocked.account, device.clone());
        let set = unlocked.sub_vault_id(E2EE_SET_NAME);
        schema::write(&self.database, move |db| {
            let e2ee = EncryptionMode::EndToEnd(key);
            match encryption_mode(db, account)? {
                Some(EncryptionMode::Plain) => begin(db, account, e2ee, &set)?,
                None => {
                    let sql = "UPDATE account SET e2ee_key_id = ?2 WHERE id = ?1";
                    db.prepare_cached(sql)?.execute(params![account.0, e2ee.as_bytes()])?;
                }
                Some(known) if known != e2ee => return Err(Error::KeyMismatch),
                Some(_) => {}
            }
            let sql = "UPDATE device SET in_e2ee_set = 1 WHERE account_id = ?1 AND id = ?2";
            db.prepare_cached(sql)?.execute(params![account.0, device.as_str()])?;
            message_set(db, &device)?.ok_or(Error::NotFound)
        })
    }

    /// Whether the account keeps a plain set that no device reads any more.
    pub fn has_unread_plaintext(&self, account: AccountId) -> Result<bool> {
        self.database.read(|db| {
            let sql = "SELECT has_plaintext AND NOT EXISTS (
                           SELECT 1 FROM device WHERE account_id = ?1 AND NOT in_e2ee_set)
                       FROM account WHERE id = ?1";
            let found = db.prepare_cached(sql)?.query_row([account.0], |row| row.get(0));
            Ok(found.optional()?.unwrap_or(false))
        })
    }

    /// Records that the plain set was cleared.
    pub fn record_plaintext_removed(&self, account: AccountId) -> Result<()> {
        schema::write(&self.database, move |db| {
            let sql = "UPDATE account SET has_plaintext = 0 WHERE id = ?1";
            db.prepare_cached(sql)?.execute([account.0])?;
            Ok(())
        })
    }
}

/// Returns the message set of a device, or `None` if the device does not exist.
pub(crate) fn message_set(db: &Connection, device: &DeviceId) -> Result<Option<MessageSet>> {
    let sql = format!(
        "SELECT {} FROM device JOIN account ON account.id = account_id WHERE device.id = ?1",
        MessageSet::COLUMNS
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([device.as_str()])?;
    rows.next()?.map(|row| MessageSet::from_row(row, 0)).transpose()
}

fn begin(db: &Connection, account: AccountId, mode: EncryptionMode, set: &VaultId) -> Result<()> {
    let sub_vault = "INSERT INTO sub_vault (vault_id, account_id) VALUES (?1, ?2)
                     ON CONFLICT (vault_id) DO NOTHING";
    db.prepare_cached(sub_vault)?.execute(params![set.as_str(), account.0])?;
    let sql = "UPDATE account SET e2ee_key_id = ?2, e2ee_vault_id = ?3, e2ee_set_id = random(),
                                  has_plaintext = 1 WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![account.0, mode.as_bytes(), set.as_str()])?;
    Ok(())
}

fn encryption_mode(db: &Connection, account: AccountId) -> Result<Option<EncryptionMode>> {
    let mut statement = db.prepare_cached("SELECT e2ee_key_id FROM account WHERE id = ?1")?;
    let found = statement.query_row([account.0], |row| row.get(0)).optional()?;
    mode_of_column(found.ok_or(Error::NotFound)?)
}

fn mode_of_column(column: Option<Vec<u8>>) -> Result<Option<EncryptionMode>> {
    let damaged = || Error::Damaged { what: "the encryption mode of an account" };
    let mode = column.map(|bytes| EncryptionMode::from_bytes(&bytes).ok_or_else(damaged));
    mode.transpose()
}
