//! The tables of a vault.

use engine::Migration;

/// SQLite's `application_id` of a vault: "WARV".
pub const APPLICATION_ID: u32 = 0x5741_5256;

/// The BLOB that may be long stands last, so that reading the columns before it needs no overflow
/// page.
pub(crate) const MIGRATIONS: &[Migration] = &[MESSAGES, GATEWAY, LOSS];

const MESSAGES: Migration = Migration {
    version: 1,
    sql: "
        PRAGMA application_id = 0x57415256;
        CREATE TABLE message (
            seq INTEGER PRIMARY KEY,
            timestamp BLOB NOT NULL UNIQUE,
            hash BLOB NOT NULL,
            content BLOB NOT NULL
        ) STRICT;
        CREATE TABLE vault (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            cursor INTEGER NOT NULL,
            count INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            digest BLOB NOT NULL,
            damaged INTEGER NOT NULL
        ) STRICT;
        INSERT INTO vault VALUES (1, 0, 0, 0, zeroblob(16), 0);
        CREATE TABLE node (
            window INTEGER PRIMARY KEY,
            count INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT;
        -- Warren itself only inserts. Who changes messages by hand leaves a vault that knows it.
        CREATE TRIGGER message_deleted AFTER DELETE ON message
            BEGIN UPDATE vault SET damaged = 1; END;
        CREATE TRIGGER message_changed AFTER UPDATE ON message
            BEGIN UPDATE vault SET damaged = 1; END;
        CREATE TABLE client (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            node INTEGER,
            cursor INTEGER NOT NULL,
            unsent INTEGER NOT NULL,
            seen_ms INTEGER NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
    ",
};

/// A chunk's `id` is its blob's, and its number in the low 20 bits.
const GATEWAY: Migration = Migration {
    version: 2,
    sql: "
        CREATE TABLE record (id INTEGER PRIMARY KEY CHECK (id = 1), content BLOB NOT NULL) STRICT;
        CREATE TABLE piece (id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT;
    ",
};

/// Both NULL where nothing was ever lost; `missing_count` NULL where nobody knows how much was.
const LOSS: Migration = Migration {
    version: 3,
    sql: "
        ALTER TABLE vault ADD COLUMN repaired_ms INTEGER;
        ALTER TABLE vault ADD COLUMN missing_count INTEGER;
    ",
};

/// A counter or a time as SQLite keeps it. Those of this crate come from counting and from clocks;
/// what a request names may be larger, and means "past everything" then.
pub(crate) fn to_column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
