-- Creates Warren's tables in a user's file. `docs/reference/formats/5-replica.md` explains them.
CREATE TABLE warren_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE warren_table (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    tracked INTEGER NOT NULL DEFAULT 0,
    declaration_pending INTEGER NOT NULL DEFAULT 0 -- 1: the next sync must declare it
);

CREATE TABLE warren_column (
    id INTEGER PRIMARY KEY,
    table_id INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    position INTEGER,     -- among the captured columns; NULL: not in this file's table
    key_position INTEGER, -- in the primary key
    fill,                 -- the value that a migration wrote to every row; NULL: none
    UNIQUE (table_id, name)
);

-- The messages that declare a table.
CREATE TABLE warren_declaration (
    table_id INTEGER NOT NULL,
    timestamp BLOB NOT NULL,
    PRIMARY KEY (table_id, timestamp)
) WITHOUT ROWID;

-- The pending changes, written by the triggers. The columns key1, key2, … hold the key; more are
-- added for tables with wider keys.
CREATE TABLE warren_outbox (
    seq INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL, -- SQLite's clock, milliseconds since 1970
    table_id INTEGER NOT NULL,
    -- '*' all, '-' deleted, '?' maybe deleted, '+' next auto key, or a digit per captured column:
    -- 0 unchanged, 1 written, 2 written without having seen the cell's value
    changed_columns TEXT NOT NULL,
    key1
);

CREATE TABLE warren_message (
    id INTEGER PRIMARY KEY,
    timestamp BLOB NOT NULL UNIQUE,
    sent INTEGER NOT NULL,        -- 0 the server lacks it, 1 has it, 2 cannot take it
    merge_state INTEGER NOT NULL, -- 0 unmerged, 1 merged, 2 rejected
    content BLOB NOT NULL
);
CREATE INDEX warren_message_unsent ON warren_message (timestamp) WHERE sent = 0;
CREATE INDEX warren_message_set_aside ON warren_message (timestamp) WHERE sent = 2;
CREATE INDEX warren_message_unmerged ON warren_message (timestamp) WHERE merge_state = 0;

-- These triggers delete the digest when another program changes the log, so that the next sync
-- compares everything. They do not fire while Warren changes the log.
CREATE TRIGGER warren_message_deleted AFTER DELETE ON warren_message
    BEGIN DELETE FROM warren_meta WHERE key = 'digest'; END;
CREATE TRIGGER warren_message_changed AFTER UPDATE OF timestamp, content ON warren_message
    BEGIN DELETE FROM warren_meta WHERE key = 'digest'; END;

-- The message of each chunk of a large value, by the BLAKE3 digest of the chunk.
CREATE TABLE warren_chunk (digest BLOB PRIMARY KEY, timestamp BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX warren_chunk_timestamp ON warren_chunk (timestamp);

-- Messages from which content was erased here but not yet on the server, with the hash of the
-- server's content.
CREATE TABLE warren_unerased (timestamp BLOB PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;

-- The names of other nodes' devices, as far as the server reports them.
CREATE TABLE warren_device (node_id INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TABLE warren_row (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    state BLOB NOT NULL, -- crdt::RowState
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- New rows with auto keys that the server does not have yet: another device may have assigned the
-- same key.
CREATE TABLE warren_provisional_key (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    timestamp BLOB NOT NULL, -- of the message that created the row
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;
CREATE INDEX warren_provisional_key_timestamp ON warren_provisional_key (timestamp);

-- Rows to which a device wrote without having seen its own newest change.
CREATE TABLE warren_unseen (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Dirty rows: they wait to be materialized.
CREATE TABLE warren_dirty_row (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    from_remote INTEGER NOT NULL, -- 0 changed here, 1 elsewhere, 2 another row has its key
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Visibility overrides. A deleted row is resurrected (visible) or dangling_reference (referred to,
-- and not visible). A live row that is not visible is displaced, constraint, invalid_key or
-- incomplete.
CREATE TABLE warren_visibility_override (
    table_id INTEGER NOT NULL,
    key BLOB NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (table_id, key)
) WITHOUT ROWID;

-- Tables that cannot be the same here as on other devices, as of the last sync.
CREATE TABLE warren_schema_conflict (
    table_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL
);
