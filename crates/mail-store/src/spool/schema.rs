//! The spool's file and tables.

use std::path::Path;
use std::sync::Arc;

use engine::{DamagePolicy, Database, DatabaseOptions, Databases, FileEncryption, Migration};

use crate::error::Result;

/// The file name of the mail spool in a data directory.
pub const SPOOL_FILE: &str = "spool.sqlite";

/// The first version that will be released; version 1 is refused. `sealed` is the last column,
/// because a row is read from its start: the other columns are then read without it.
const TABLES: Migration = Migration {
    version: 2,
    sql: "
        CREATE TABLE spool_state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            spool_id BLOB NOT NULL,
            filed_count INTEGER NOT NULL
        ) STRICT;
        INSERT INTO spool_state VALUES (1, randomblob(16), 0);
        CREATE TABLE delivery (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            vault_id BLOB NOT NULL,
            size INTEGER NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT;
        CREATE INDEX delivery_by_vault ON delivery (vault_id, seq, size);
        CREATE TABLE set_aside (
            seq INTEGER PRIMARY KEY,
            vault_id BLOB NOT NULL,
            size INTEGER NOT NULL,
            reason TEXT NOT NULL,
            set_aside_ms INTEGER NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT;
        CREATE TABLE filed (
            vault_id BLOB PRIMARY KEY NOT NULL,
            seq INTEGER NOT NULL,
            modseq INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
    ",
};

/// The file is not encrypted, because mail arrives when no key is known: the deliveries are sealed.
pub(super) fn open(databases: &Databases, data: &Path) -> Result<Arc<Database>> {
    let options = || DatabaseOptions {
        migrations: &[TABLES],
        create: true,
        // These rows exist nowhere else, and no backup has the latest of them.
        damage: DamagePolicy::Report,
        ..DatabaseOptions::new(FileEncryption::None)
    };
    Ok(databases.open(&data.join(SPOOL_FILE), options)?)
}
