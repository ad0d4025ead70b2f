//! The tables of a vault.

use engine::Migration;

/// SQLite's `application_id` of a vault: "WARV".
pub const APPLICATION_ID: u32 = 0x5741_5256;

pub(crate) const MIGRATIONS: &[Migration] = &[TABLES];

/// The unreleased versions 1 to 3 had other names, and are refused.
///
/// - The BLOB that may be long stands last, so that reading the columns before it needs no overflow
///   page.
/// - `vault_summary` is stale when somebody changed messages by hand.
/// - Its `repaired_ms` and `missing_count` are NULL where nothing was ever lost; `missing_count` is
///   NULL, too, where nobody knows how much was.
/// - The `id` of a `blob_chunk` is its blob's, and its number in the low 20 bits.
const TABLES: Migration = Migration {
    version: 4,
    sql: "
        PRAGMA application_id = 0x57415256;
        CREATE TABLE message (
            seq INTEGER PRIMARY KEY,
            timestamp BLOB NOT NULL UNIQUE,
            hash BLOB NOT NULL,
            content BLOB NOT NULL
        ) STRICT;
        CREATE TABLE vault_summary (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            last_seq INTEGER NOT NULL,
            messages_count INTEGER NOT NULL,
            messages_bytes INTEGER NOT NULL,
            digest BLOB NOT NULL,
            stale INTEGER NOT NULL,
            repaired_ms INTEGER,
            missing_count INTEGER
        ) STRICT;
        INSERT INTO vault_summary VALUES (1, 0, 0, 0, zeroblob(16), 0, NULL, NULL);
        CREATE TABLE fingerprint_window (
            window_id INTEGER PRIMARY KEY,
            messages_count INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT;
        -- Warren itself only inserts. Who changes messages by hand leaves a vault that knows it.
        CREATE TRIGGER message_deleted AFTER DELETE ON message
            BEGIN UPDATE vault_summary SET stale = 1; END;
        CREATE TRIGGER message_changed AFTER UPDATE ON message
            BEGIN UPDATE vault_summary SET stale = 1; END;
        CREATE TABLE device (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            node_id INTEGER,
            cursor INTEGER NOT NULL,
            unsent_count INTEGER NOT NULL,
            last_seen_ms INTEGER NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE gateway_state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            content BLOB NOT NULL
        ) STRICT;
        CREATE TABLE blob_chunk (id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT;
    ",
};

/// A counter or a time as SQLite keeps it. Those of this crate come from counting and from clocks;
/// what a request names may be larger, and means "past everything" then.
pub(crate) fn to_column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
