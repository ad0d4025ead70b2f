-- What Warren keeps in a user's file. `docs/formats/5-replica.md` explains each table.
CREATE TABLE warren_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE warren_table (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    tracked INTEGER NOT NULL DEFAULT 0,
    announce INTEGER NOT NULL DEFAULT 0  -- its declaration is still to be sent
);

CREATE TABLE warren_column (
    id INTEGER PRIMARY KEY,
    table_id INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    place INTEGER,     -- among the captured columns; NULL: not in this file's table
    key_place INTEGER, -- in the primary key
    fill,              -- what a migration has written to every row; NULL: nothing
    UNIQUE (table_id, name)
);

-- Which messages declare a table.
CREATE TABLE warren_declaration (
    table_id INTEGER NOT NULL,
    timestamp BLOB NOT NULL,
    PRIMARY KEY (table_id, timestamp)
) WITHOUT ROWID;

-- Written by the triggers. Columns k1, k2, … hold the key; more are added as tables need them.
CREATE TABLE warren_outbox (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,       -- SQLite's clock, milliseconds since 1970
    table_id INTEGER NOT NULL,
    changed TEXT NOT NULL,     -- '*' all, '-' gone, '?' look, '+' a key, or per captured column 0, 1, or 2: written, and not seen before
    k1
);

CREATE TABLE warren_message (
    id INTEGER PRIMARY KEY,
    timestamp BLOB NOT NULL UNIQUE,
    sent INTEGER NOT NULL,     -- 0 the server lacks it, 1 has it, 2 does not take it
    merged INTEGER NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX warren_message_unsent ON warren_message (timestamp) WHERE sent = 0;
CREATE INDEX warren_message_set_aside ON warren_message (timestamp) WHERE sent = 2;
CREATE INDEX warren_message_unmerged ON warren_message (timestamp) WHERE merged = 0;

-- Warren's own connections fire no triggers. Who changes the log by hand leaves a file that knows it:
-- without a digest the next sync compares everything.
CREATE TRIGGER warren_message_deleted AFTER DELETE ON warren_message
    BEGIN DELETE FROM warren_meta WHERE key = 'digest'; END;
CREATE TRIGGER warren_message_changed AFTER UPDATE OF timestamp, content ON warren_message
    BEGIN DELETE FROM warren_meta WHERE key = 'digest'; END;

-- Which message has a part of a large value, by BLAKE3 of the part.
CREATE TABLE warren_part (digest BLOB PRIMARY KEY, timestamp BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX warren_part_timestamp ON warren_part (timestamp);

-- Messages of which something was erased here, and that the server has as they were: their hashes there.
CREATE TABLE warren_unerased (timestamp BLOB PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;

-- What people call the devices of other nodes, as far as the server said it.
CREATE TABLE warren_device (node INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TABLE warren_row (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    state BLOB NOT NULL, -- crdt::Row
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- New rows whose keys SQLite counted, and that the server does not have: another device may have
-- given the same key.
CREATE TABLE warren_counted (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    timestamp BLOB NOT NULL, -- of the message that made it
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;
CREATE INDEX warren_counted_timestamp ON warren_counted (timestamp);

-- Rows to which a device wrote without having seen its own newest change.
CREATE TABLE warren_unseen (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Rows whose visible form has yet to follow their state.
CREATE TABLE warren_unsettled (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    remote INTEGER NOT NULL, -- 0 changed here, 1 elsewhere, 2 another row stands in its place
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Rows whose visibility is not their liveness. Deleted: kept (visible), missing (referred to, and not
-- visible); live, and not visible: displaced, constraint, key.
CREATE TABLE warren_exception (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Tables that cannot be as other devices have them, as the last sync found.
CREATE TABLE warren_obstacle (name TEXT NOT NULL, kind TEXT NOT NULL, why TEXT NOT NULL);
