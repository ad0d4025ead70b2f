//! The accounts file: its tables, and functions that open and write it.
//!
//! It is not encrypted, because no one could provide a key when the server starts. It contains no
//! vault's plaintext and no unwrapped key. Devices' names are in the vaults.
//!
//! # Invariants
//! - A device's `registered_by` is a device of the same account, and is deleted before or with it:
//!   the foreign key covers both columns.
//! - An account's id is not used again after the account is removed (`AUTOINCREMENT`), so a stale
//!   id never refers to another account.
//! - Deleted data is overwritten (`secure_delete`): a revoked token and an older copy of its wrap
//!   would open the vault. Until the next checkpoint, the WAL may still contain the data.

use std::path::Path;
use std::sync::Arc;

use engine::{
    DamagePolicy, Database, DatabaseOptions, Databases, Durability, FileEncryption, Migration,
};
use rusqlite::Connection;

use crate::error::{Error, Result};

/// The file name of the accounts in a data directory.
pub const ACCOUNTS_FILE: &str = "accounts.sqlite";

/// The directory in a new data directory in which a restore works until it is complete. While it
/// exists, [`check_restored`] refuses the data directory.
pub const RESTORING: &str = "restoring";

const MIGRATIONS: &[Migration] = &[TABLES];

/// The first released version. The unreleased versions 1 to 11 had other names, and are refused.
///
/// `account`:
/// - `wrap_number` counts the wraps of the account's password, from 0 (`revocations.rs`).
/// - `recovery_wrapped_key` is NULL without a recovery secret, and `recovery_number` counts these
///   secrets, from 0 (`account_recovery.rs`).
/// - `set_id` is the id of the set in the account's own vault, `e2ee_set_id` that of its e2ee set,
///   if there is one.
/// - `e2ee_key_id` is NULL until the first push, and empty if the messages are plain.
/// - `e2ee_vault_id` is the sub-vault with the e2ee set (`encryption_mode.rs`).
/// - A limit of NULL means the server's default.
const TABLES: Migration = Migration {
    version: 12,
    sql: "
        CREATE TABLE account (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            login TEXT NOT NULL UNIQUE,
            vault_id TEXT NOT NULL UNIQUE,
            created_ms INTEGER NOT NULL,
            kdf_memory_kib INTEGER NOT NULL,
            kdf_passes INTEGER NOT NULL,
            kdf_salt BLOB NOT NULL,
            wrapped_key BLOB NOT NULL,
            wrap_number INTEGER NOT NULL DEFAULT 0,
            recovery_wrapped_key BLOB,
            recovery_number INTEGER NOT NULL DEFAULT 0,
            set_id INTEGER NOT NULL,
            e2ee_key_id BLOB,
            e2ee_vault_id TEXT,
            e2ee_set_id INTEGER,
            has_plaintext INTEGER NOT NULL DEFAULT 0,
            messages_max INTEGER,
            bytes_max INTEGER,
            devices_max INTEGER,
            mail_bytes_max INTEGER
        ) STRICT;
        CREATE TABLE device (
            id TEXT PRIMARY KEY NOT NULL,
            account_id INTEGER NOT NULL REFERENCES account ON DELETE CASCADE,
            registered_by TEXT,
            created_ms INTEGER NOT NULL,
            token_hash BLOB NOT NULL UNIQUE,
            wrapped_key BLOB NOT NULL,
            in_e2ee_set INTEGER NOT NULL DEFAULT 0,
            UNIQUE (account_id, id),
            FOREIGN KEY (account_id, registered_by) REFERENCES device (account_id, id)
                ON DELETE CASCADE
        ) STRICT;
        CREATE INDEX device_by_registrar ON device (account_id, registered_by);
        CREATE TABLE sub_vault (
            vault_id TEXT PRIMARY KEY NOT NULL,
            account_id INTEGER NOT NULL REFERENCES account ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sub_vault_by_account ON sub_vault (account_id);
        CREATE TABLE mail_vault (
            account_id INTEGER PRIMARY KEY REFERENCES account ON DELETE CASCADE,
            vault_id TEXT NOT NULL UNIQUE,
            restores_count INTEGER NOT NULL DEFAULT 0,
            public_key BLOB NOT NULL
        ) STRICT;
        CREATE TABLE mail_password (
            id TEXT PRIMARY KEY NOT NULL,
            account_id INTEGER NOT NULL REFERENCES mail_vault ON DELETE CASCADE,
            hash BLOB NOT NULL UNIQUE,
            wrapped_key BLOB NOT NULL,
            sealed_name BLOB NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX mail_password_by_account ON mail_password (account_id);
        CREATE TABLE mail_address (
            address TEXT PRIMARY KEY NOT NULL,
            account_id INTEGER NOT NULL REFERENCES mail_vault ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX mail_address_by_account ON mail_address (account_id);
    ",
};

pub(crate) fn open(databases: &Databases, data: &Path) -> Result<Arc<Database>> {
    make_data_directory(data)?;
    check_restored(data)?;
    let options = || DatabaseOptions {
        migrations: MIGRATIONS,
        create: true,
        // These rows exist nowhere else, except perhaps in a backup.
        damage: DamagePolicy::Report,
        ..DatabaseOptions::new(FileEncryption::None)
    };
    Ok(databases.open(&data.join(ACCOUNTS_FILE), options)?)
}

/// Refuses a data directory whose restore is not complete.
pub fn check_restored(data: &Path) -> Result<()> {
    if data.join(RESTORING).exists() {
        return Err(Error::UnfinishedRestore { path: data.to_owned() });
    }
    Ok(())
}

/// Creates a data directory if it is missing. Other users of the machine must not read the wrapped
/// keys.
pub fn make_data_directory(path: &Path) -> Result<()> {
    let mut directory = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
    let made = directory.recursive(true).create(path);
    Ok(made.map_err(|source| engine::Error::Io { path: path.to_owned(), source })?)
}

/// Runs a transaction and returns when it is on the disk.
pub(crate) fn write<T: Send + 'static>(
    database: &Database,
    transaction: impl Fn(&Connection) -> Result<T> + Send + 'static,
) -> Result<T> {
    let pending = database.write(Durability::Disk, move |db| {
        db.execute_batch("PRAGMA secure_delete = ON")?;
        transaction(db)
    });
    pending.wait()
}

/// Converts a time to SQLite's signed integers.
pub(crate) fn to_column(time_ms: u64) -> i64 {
    time_ms.cast_signed()
}
