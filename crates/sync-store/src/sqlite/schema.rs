//! The tables of a vault.

use engine::Migration;

/// SQLite's `application_id` of a vault: "WARV".
pub const APPLICATION_ID: u32 = 0x5741_5256;

pub(crate) const MIGRATIONS: &[Migration] = &[TABLES];

/// The first released version. The unreleased versions 1 to 3 had other names, and are refused.
///
/// - The BLOB that may be long is the last column, so that reading the columns before it needs no
///   overflow page.
/// - `vault_summary` is stale after messages were deleted or updated by hand. `erase` updates
///   messages, too, but then writes the summary, which is not stale any more.
/// - Its `repaired_ms` and `missing_count` are NULL if no messages were ever lost; `missing_count`
///   is also NULL if their number is unknown.
/// - The `id` of a `blob_chunk` consists of its blob's id and, in the low 20 bits, its number.
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
        -- Normally Warren only inserts messages. These triggers mark the vault as stale when a
        -- person changes messages by hand.
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

/// Converts a counter or a time to SQLite's integers. Values of this crate come from counting and
/// from clocks; a request may name a larger value, which then means "past everything".
pub(crate) fn to_column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
