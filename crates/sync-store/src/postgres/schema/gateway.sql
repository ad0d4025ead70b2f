-- Vaults in PostgreSQL: functions for gateways.
--
-- Warren computes a gateway's new state outside the database. It reads the state together with its
-- version, and passes that version when it writes the new state. `WR003` means that the state or
-- the messages have changed since they were read, and that the caller must start again.

-- Returns the gateway's state, or an empty state of version 0 if there is none. Also returns the
-- newest sequence number at that moment, and the places of the known timestamps in `list`, which
-- has 16 bytes for each timestamp. Places count from 0.
CREATE OR REPLACE FUNCTION warren.read_gateway_state(of_vault uuid, list bytea)
RETURNS TABLE (places integer[], newest bigint, state_version bigint, state_content bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    vault vault_summary := recorded_summary(of_vault);
BEGIN
    SELECT coalesce(array_agg(n ORDER BY n), '{}') INTO places
    FROM generate_series(0, length(list) / 16 - 1) AS n
    CROSS JOIN LATERAL (
        SELECT FROM message AS k
        WHERE k.vault_id = of_vault AND k.timestamp = substr(list, n * 16 + 1, 16)
        LIMIT 1
    ) AS m;
    newest := vault.last_seq;
    SELECT g.version, g.content INTO state_version, state_content
    FROM gateway_state AS g WHERE g.vault_id = of_vault;
    IF NOT FOUND THEN
        state_version := 0;
        state_content := '';
    END IF;
    RETURN NEXT;
END
$$;

-- Stores messages, all of which must be new, and the gateway's state. Returns the sequence number
-- that was the newest before them.
CREATE OR REPLACE FUNCTION warren.exchange(
    of_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[],
    contents bytea[], version_before bigint, new_state bytea
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    new_ones record;
    vault vault_summary;
BEGIN
    PERFORM write_gateway_state(of_vault, version_before, new_state);
    IF cardinality(stamps) = 0 THEN
        vault := recorded_summary(of_vault);
        RETURN vault.last_seq;
    END IF;
    SELECT i.* INTO new_ones
    FROM insert_new(of_vault, stamps, highs, lows, sizes, contents) AS i;
    IF length(new_ones.arrived) < 16 * cardinality(stamps) THEN
        RAISE EXCEPTION 'a timestamp has become known' USING ERRCODE = 'WR003';
    END IF;
    vault := assign_sequence(of_vault, new_ones.arrived, new_ones.added, new_ones.added_bytes);
    RETURN vault.last_seq - cardinality(stamps);
END
$$;

-- Writes the state and locks it until the commit. If two exchanges run at the same time, the second
-- waits here, before it does any work.
CREATE OR REPLACE FUNCTION warren.write_gateway_state(
    for_vault uuid, version_before bigint, new_state bytea
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF version_before = 0 THEN
        INSERT INTO gateway_state (vault_id, version, content) VALUES (for_vault, 1, new_state)
        ON CONFLICT (vault_id) DO NOTHING;
    ELSE
        UPDATE gateway_state AS g SET version = g.version + 1, content = new_state
        WHERE g.vault_id = for_vault AND g.version = version_before;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the gateway''s state has changed' USING ERRCODE = 'WR003';
    END IF;
END
$$;

-- Removes all messages and writes the gateway's state. Returns the newest sequence number; the
-- numbers continue after it.
CREATE OR REPLACE FUNCTION warren.clear(of_vault uuid, version_before bigint, new_state bytea)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary;
BEGIN
    PERFORM write_gateway_state(of_vault, version_before, new_state);
    PERFORM lock_vault(of_vault);
    PERFORM delete_messages(of_vault);
    UPDATE vault_summary AS v SET messages_count = 0, messages_bytes = 0, lane0 = 0, lane1 = 0,
        lane2 = 0, lane3 = 0, stale = false
    WHERE v.vault_id = of_vault;
    vault := recorded_summary(of_vault);
    RETURN vault.last_seq;
END
$$;

-- Returns messages from a timestamp on, in order of time, until their contents reach `bytes_max`
-- bytes. Messages with sequence numbers above `until_seq` are left out. A message's row does not
-- contain its sequence number, but the timestamps of these later messages are recorded, and they
-- are few.
CREATE OR REPLACE FUNCTION warren.messages_from(
    of_vault uuid, start_stamp bytea, until_seq bigint, count_max integer, bytes_max bigint
) RETURNS TABLE (stamps bytea[], contents bytea[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    vault vault_summary := recorded_summary(of_vault);
    late bytea := timestamps_between(of_vault, until_seq, vault.last_seq);
BEGIN
    RETURN QUERY
    SELECT coalesce(array_agg(f.timestamp ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.content ORDER BY f.timestamp), '{}')
    FROM (
        SELECT p.timestamp, p.content,
            sum(p.content_bytes) OVER (ORDER BY p.timestamp ROWS UNBOUNDED PRECEDING)
                - p.content_bytes AS bytes_before
        FROM (
            SELECT m.timestamp, m.content_bytes, m.content FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp >= start_stamp
                -- This is a hashed subplan, even if hash joins are disabled.
                AND m.timestamp NOT IN (
                    SELECT l.stamp FROM generate_series(0, length(late) / 16 - 1) AS n
                    CROSS JOIN LATERAL (SELECT substr(late, n * 16 + 1, 16) AS stamp) AS l
                    WHERE l.stamp >= start_stamp
                )
            ORDER BY m.timestamp LIMIT count_max
        ) AS p
    ) AS f
    WHERE f.bytes_before < greatest(bytes_max, 1);
END
$$;

CREATE OR REPLACE FUNCTION warren.put_chunk(
    of_vault uuid, for_blob bigint, for_number integer, new_content bytea
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO blob_chunk (vault_id, blob_id, chunk_number, content)
    VALUES (of_vault, for_blob, for_number, new_content)
    ON CONFLICT (vault_id, blob_id, chunk_number) DO UPDATE SET content = excluded.content;
END
$$;

-- Returns a chunk, or null if it is missing.
CREATE OR REPLACE FUNCTION warren.chunk(of_vault uuid, for_blob bigint, for_number integer)
RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT c.content FROM blob_chunk AS c
        WHERE c.vault_id = of_vault AND c.blob_id = for_blob AND c.chunk_number = for_number
    );
END
$$;

CREATE OR REPLACE FUNCTION warren.chunk_ids(of_vault uuid)
RETURNS TABLE (of_blob bigint, number_in_blob integer)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT c.blob_id, c.chunk_number FROM blob_chunk AS c
    WHERE c.vault_id = of_vault ORDER BY c.blob_id, c.chunk_number;
END
$$;

-- Writes a gateway state that names a blob, and removes the chunks of all other blobs. Returns the
-- newest sequence number. `WR004` means that chunks of the blob are missing, because another
-- process has written a state that names another blob in the meantime.
CREATE OR REPLACE FUNCTION warren.replace_blob(
    of_vault uuid, version_before bigint, new_state bytea, kept_blob bigint, chunks_count integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    found_count bigint;
    vault vault_summary;
BEGIN
    PERFORM write_gateway_state(of_vault, version_before, new_state);
    SELECT count(*) INTO found_count
    FROM blob_chunk AS c WHERE c.vault_id = of_vault AND c.blob_id = kept_blob;
    IF found_count <> chunks_count THEN
        RAISE EXCEPTION 'chunks are missing' USING ERRCODE = 'WR004';
    END IF;
    DELETE FROM blob_chunk AS c WHERE c.vault_id = of_vault AND c.blob_id <> kept_blob;
    vault := recorded_summary(of_vault);
    RETURN vault.last_seq;
END
$$;

-- Removes the chunks of a blob that no state names.
CREATE OR REPLACE FUNCTION warren.remove_blob(of_vault uuid, unnamed_blob bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM blob_chunk AS c WHERE c.vault_id = of_vault AND c.blob_id = unnamed_blob;
END
$$;
