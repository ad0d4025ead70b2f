//! The tables of a vault.

use engine::Migration;

/// SQLite's `application_id` of a vault: "WARV".
pub const APPLICATION_ID: u32 = 0x5741_5256;

/// The BLOB that may be long stands last, so that reading the columns before it needs no overflow
/// page.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    sql: "
        PRAGMA application_id = 0x57415256;
        CREATE TABLE message (
            seq INTEGER PRIMARY KEY,
            timestamp BLOB NOT NULL UNIQUE,
            content BLOB NOT NULL
        ) STRICT;
        CREATE TABLE fingerprint (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            count INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT;
        INSERT INTO fingerprint (id, count, digest) VALUES (1, 0, zeroblob(16));
        CREATE TABLE client (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            cursor INTEGER NOT NULL,
            seen_ms INTEGER NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
    ",
}];

/// A counter or a time as SQLite keeps it. Those of this crate come from counting and from clocks;
/// what a request names may be larger, and means "past everything" then.
pub(crate) fn to_column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
