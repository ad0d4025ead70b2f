-- Vaults in PostgreSQL, 14 or later: the tables (docs/reference/formats/10-postgres.md).
--
-- `vault_id` comes first in every key, so that every statement stays on one machine if the tables
-- are spread over several.

CREATE SCHEMA IF NOT EXISTS warren;

CREATE TABLE IF NOT EXISTS warren.schema_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL
);

CREATE TABLE IF NOT EXISTS warren.message (
    vault_id uuid NOT NULL,
    timestamp bytea NOT NULL CHECK (length(timestamp) = 16),
    hash_high bigint NOT NULL,
    hash_low bigint NOT NULL,
    content_bytes integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (vault_id, timestamp) INCLUDE (hash_high, hash_low)
);

-- The four 32-bit quarters of the hashes are summed separately, without carrying into the next one,
-- because PostgreSQL has no 128-bit integers. A sum has room for 2^31 messages.
CREATE TABLE IF NOT EXISTS warren.fingerprint_window (
    vault_id uuid NOT NULL,
    window_id integer NOT NULL,
    messages_count bigint NOT NULL,
    lane0 bigint NOT NULL,
    lane1 bigint NOT NULL,
    lane2 bigint NOT NULL,
    lane3 bigint NOT NULL,
    PRIMARY KEY (vault_id, window_id)
) WITH (fillfactor = 70);

-- Every request that stores messages updates the vault's row, so the fill factor leaves space for
-- the row's new versions on the same page. The row is stale after messages were changed by hand.
CREATE TABLE IF NOT EXISTS warren.vault_summary (
    vault_id uuid PRIMARY KEY,
    last_seq bigint NOT NULL,
    messages_count bigint NOT NULL,
    messages_bytes bigint NOT NULL,
    lane0 bigint NOT NULL,
    lane1 bigint NOT NULL,
    lane2 bigint NOT NULL,
    lane3 bigint NOT NULL,
    stale boolean NOT NULL
) WITH (fillfactor = 50);

-- A row has the timestamps of the messages with the sequence numbers last_seq - messages_count + 1
-- … last_seq, 16 bytes each, in order.
CREATE TABLE IF NOT EXISTS warren.sequence_block (
    vault_id uuid NOT NULL,
    last_seq bigint NOT NULL,
    messages_count integer NOT NULL,
    timestamps bytea NOT NULL,
    PRIMARY KEY (vault_id, last_seq),
    CHECK (length(timestamps) = 16 * messages_count)
);

CREATE TABLE IF NOT EXISTS warren.device (
    vault_id uuid NOT NULL,
    id text NOT NULL,
    name bytea NOT NULL,
    node_id bigint,
    cursor bigint NOT NULL,
    unsent_count bigint NOT NULL,
    last_seen_ms bigint NOT NULL,
    created_ms bigint NOT NULL,
    PRIMARY KEY (vault_id, id)
) WITH (fillfactor = 70);

-- A gateway's data: its state, and blobs in chunks.
CREATE TABLE IF NOT EXISTS warren.gateway_state (
    vault_id uuid PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
);

CREATE TABLE IF NOT EXISTS warren.blob_chunk (
    vault_id uuid NOT NULL,
    blob_id bigint NOT NULL,
    chunk_number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (vault_id, blob_id, chunk_number)
);

-- Sealed contents cannot be compressed. PostgreSQL reads a part of an uncompressed list of
-- timestamps without the rest.
ALTER TABLE warren.message ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.gateway_state ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.blob_chunk ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.sequence_block ALTER timestamps SET STORAGE EXTERNAL;
