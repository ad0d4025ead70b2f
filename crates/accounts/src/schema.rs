//! The accounts file: its tables, and how it is opened and written.
//!
//! It is not encrypted, for there is nobody to give a key when the server starts; it holds no
//! vault's plaintext and no key that is not wrapped. Devices' names are in the vaults.
//!
//! # Invariants
//! - A device's `registered_by` is a device of the same account, and goes before or with it: the
//!   foreign key is over both columns.
//! - An account's id is not used again after it is removed (`AUTOINCREMENT`), so what still holds
//!   the id of a removed account never means another.
//! - What is deleted is overwritten (`secure_delete`): a revoked token and an older copy of its
//!   wrap would open the vault. Before the next checkpoint the WAL may still hold it.

use std::path::Path;
use std::sync::Arc;

use engine::{
    DamagePolicy, Database, DatabaseOptions, Databases, Durability, FileEncryption, Migration,
};
use rusqlite::Connection;

use crate::error::{Error, Result};

/// The accounts, in a data directory.
pub const ACCOUNTS_FILE: &str = "accounts.sqlite";

/// The folder in a new data directory in which a restore works until it is complete. While it is
/// there, [`check_restored`] refuses the directory.
pub const RESTORING: &str = "restoring";

const MIGRATIONS: &[Migration] = &[TABLES];

/// The unreleased versions 1 to 6 had other names, and are refused.
///
/// `account`:
/// - `wrap_number` counts the wraps that the account's password has had, from 0 (`revocations.rs`).
/// - `set_id` is of the account's own vault, `e2ee_set_id` of its e2ee set, if there is one.
/// - `e2ee_key_id` is NULL until the first push, and empty if the messages are plain.
/// - `e2ee_vault_id` is the sub-vault that is the e2ee set (`encryption_mode.rs`).
/// - A limit of NULL is the server's default.
const TABLES: Migration = Migration {
    version: 7,
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
            set_id INTEGER NOT NULL,
            e2ee_key_id BLOB,
            e2ee_vault_id TEXT,
            e2ee_set_id INTEGER,
            has_plaintext INTEGER NOT NULL DEFAULT 0,
            messages_max INTEGER,
            bytes_max INTEGER,
            devices_max INTEGER
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
    ",
};

pub(crate) fn open(databases: &Databases, data: &Path) -> Result<Arc<Database>> {
    make_data_directory(data)?;
    check_restored(data)?;
    let options = || DatabaseOptions {
        migrations: MIGRATIONS,
        create: true,
        // Nobody else has these rows: a backup may.
        damage: DamagePolicy::Report,
        ..DatabaseOptions::new(FileEncryption::None)
    };
    Ok(databases.open(&data.join(ACCOUNTS_FILE), options)?)
}

/// Refuses a data directory whose restore has not finished.
pub fn check_restored(data: &Path) -> Result<()> {
    if data.join(RESTORING).exists() {
        return Err(Error::UnfinishedRestore { path: data.to_owned() });
    }
    Ok(())
}

/// Makes a data directory, unless it is there. Who else has an account on the machine has no
/// business among the wrapped keys.
pub fn make_data_directory(path: &Path) -> Result<()> {
    let mut directory = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
    let made = directory.recursive(true).create(path);
    Ok(made.map_err(|source| engine::Error::Io { path: path.to_owned(), source })?)
}

/// Runs a transaction, and answers when it is on the disk.
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

/// A time as SQLite stores it, whose integers are signed.
pub(crate) fn to_column(time_ms: u64) -> i64 {
    time_ms.cast_signed()
}
