-- Vaults in PostgreSQL, 14 or later: the tables (docs/formats/10-postgres.md).
--
-- `vault_id` comes first in every key, so that every statement stays on one machine where the
-- tables are spread over several.

CREATE SCHEMA IF NOT EXISTS warren;

CREATE TABLE IF NOT EXISTS warren.schema_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    number integer NOT NULL
);

CREATE TABLE IF NOT EXISTS warren.message (
    vault_id uuid NOT NULL,
    timestamp bytea NOT NULL CHECK (length(timestamp) = 16),
    hash_high bigint NOT NULL,
    hash_low bigint NOT NULL,
    size integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (vault_id, timestamp) INCLUDE (hash_high, hash_low)
);

-- The 32-bit quarters of the hashes are summed on their own, without a carry: then adding needs no
-- arithmetic that PostgreSQL lacks, and 2^31 messages fit.
CREATE TABLE IF NOT EXISTS warren.node (
    vault_id uuid NOT NULL,
    window_id integer NOT NULL,
    count bigint NOT NULL,
    lane0 bigint NOT NULL,
    lane1 bigint NOT NULL,
    lane2 bigint NOT NULL,
    lane3 bigint NOT NULL,
    PRIMARY KEY (vault_id, window_id)
) WITH (fillfactor = 70);

-- Changed by every request that stores: room for its versions within the page.
CREATE TABLE IF NOT EXISTS warren.vault (
    vault_id uuid PRIMARY KEY,
    cursor bigint NOT NULL,
    count bigint NOT NULL,
    bytes bigint NOT NULL,
    lane0 bigint NOT NULL,
    lane1 bigint NOT NULL,
    lane2 bigint NOT NULL,
    lane3 bigint NOT NULL,
    damaged boolean NOT NULL
) WITH (fillfactor = 50);

-- The messages that got the arrival numbers last - count + 1 … last, 16 bytes each, in order.
CREATE TABLE IF NOT EXISTS warren.arrival (
    vault_id uuid NOT NULL,
    last bigint NOT NULL,
    count integer NOT NULL,
    timestamps bytea NOT NULL,
    PRIMARY KEY (vault_id, last),
    CHECK (length(timestamps) = 16 * count)
);

CREATE TABLE IF NOT EXISTS warren.client (
    vault_id uuid NOT NULL,
    id text NOT NULL,
    name bytea NOT NULL,
    node bigint,
    cursor bigint NOT NULL,
    unsent bigint NOT NULL,
    seen_ms bigint NOT NULL,
    created_ms bigint NOT NULL,
    PRIMARY KEY (vault_id, id)
) WITH (fillfactor = 70);

-- What a gateway keeps: its record, and blobs in pieces.
CREATE TABLE IF NOT EXISTS warren.record (
    vault_id uuid PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
);

CREATE TABLE IF NOT EXISTS warren.piece (
    vault_id uuid NOT NULL,
    blob bigint NOT NULL,
    number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (vault_id, blob, number)
);

-- Sealed contents do not get smaller, and a part of the list is read without the rest of it.
ALTER TABLE warren.message ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.record ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.piece ALTER content SET STORAGE EXTERNAL;
ALTER TABLE warren.arrival ALTER timestamps SET STORAGE EXTERNAL;
