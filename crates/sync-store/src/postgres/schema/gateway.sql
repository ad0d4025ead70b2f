-- Vaults in PostgreSQL: what gateways use.
--
-- How a record changes is computed outside. So its version is read with it, and who writes it says
-- which version that was; `WR003` says that something came between, and to start again.

-- The record, empty in version 0 if there is none, with the newest arrival number at that moment,
-- and which of a list of timestamps, 16 bytes each, are known. Places count from 0.
CREATE OR REPLACE FUNCTION warren.known(of_vault uuid, list bytea)
RETURNS TABLE (places integer[], newest bigint, record_version bigint, record_content bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    root vault := stored_root(of_vault);
BEGIN
    SELECT coalesce(array_agg(n ORDER BY n), '{}') INTO places
    FROM generate_series(0, length(list) / 16 - 1) AS n
    CROSS JOIN LATERAL (
        SELECT FROM message AS k
        WHERE k.vault_id = of_vault AND k.timestamp = substr(list, n * 16 + 1, 16)
        LIMIT 1
    ) AS m;
    newest := root.cursor;
    SELECT r.version, r.content INTO record_version, record_content
    FROM record AS r WHERE r.vault_id = of_vault;
    IF NOT FOUND THEN
        record_version := 0;
        record_content := '';
    END IF;
    RETURN NEXT;
END
$$;

-- Stores messages that are all new, and the record. Returns the newest arrival number before them.
CREATE OR REPLACE FUNCTION warren.exchange(
    of_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[],
    contents bytea[], version_before bigint, new_record bytea
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    new_ones record;
    root vault;
BEGIN
    PERFORM write_record(of_vault, version_before, new_record);
    IF cardinality(stamps) = 0 THEN
        root := stored_root(of_vault);
        RETURN root.cursor;
    END IF;
    SELECT i.* INTO new_ones
    FROM insert_new(of_vault, stamps, highs, lows, sizes, contents) AS i;
    IF length(new_ones.arrived) < 16 * cardinality(stamps) THEN
        RAISE EXCEPTION 'a timestamp has become known' USING ERRCODE = 'WR003';
    END IF;
    root := number_new(of_vault, new_ones.arrived, new_ones.added, new_ones.added_bytes);
    RETURN root.cursor - cardinality(stamps);
END
$$;

-- Locks the record until the commit: of two exchanges the later waits before it does any work.
CREATE OR REPLACE FUNCTION warren.write_record(
    for_vault uuid, version_before bigint, new_record bytea
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF version_before = 0 THEN
        INSERT INTO record (vault_id, version, content) VALUES (for_vault, 1, new_record)
        ON CONFLICT (vault_id) DO NOTHING;
    ELSE
        UPDATE record AS r SET version = r.version + 1, content = new_record
        WHERE r.vault_id = for_vault AND r.version = version_before;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the record has changed' USING ERRCODE = 'WR003';
    END IF;
END
$$;

-- Forgets all messages, and writes the record. Arrival numbers go on after the newest, which it
-- returns.
CREATE OR REPLACE FUNCTION warren.clear(of_vault uuid, version_before bigint, new_record bytea)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    root vault;
BEGIN
    PERFORM write_record(of_vault, version_before, new_record);
    PERFORM lock_vault(of_vault);
    PERFORM delete_messages(of_vault);
    UPDATE vault AS v SET count = 0, bytes = 0, lane0 = 0, lane1 = 0, lane2 = 0, lane3 = 0,
        damaged = false
    WHERE v.vault_id = of_vault;
    root := stored_root(of_vault);
    RETURN root.cursor;
END
$$;

-- Messages from a timestamp on in order of time, of those with arrival numbers up to
-- `until_number`; none after `bytes_max` of contents. A message does not know its number; but those
-- that came later are few, and known.
CREATE OR REPLACE FUNCTION warren.since(
    of_vault uuid, start_stamp bytea, until_number bigint, count_max integer, bytes_max bigint
) RETURNS TABLE (stamps bytea[], contents bytea[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    root vault := stored_root(of_vault);
    late bytea := stamps_between(of_vault, until_number, root.cursor);
BEGIN
    RETURN QUERY
    SELECT coalesce(array_agg(f.timestamp ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.content ORDER BY f.timestamp), '{}')
    FROM (
        SELECT p.timestamp, p.content,
            sum(p.size) OVER (ORDER BY p.timestamp ROWS UNBOUNDED PRECEDING) - p.size
                AS bytes_before
        FROM (
            SELECT m.timestamp, m.size, m.content FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp >= start_stamp
                -- A hashed subplan, also where joins may not hash.
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

CREATE OR REPLACE FUNCTION warren.put_piece(
    of_vault uuid, for_blob bigint, for_number integer, new_content bytea
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO piece (vault_id, blob, number, content)
    VALUES (of_vault, for_blob, for_number, new_content)
    ON CONFLICT (vault_id, blob, number) DO UPDATE SET content = excluded.content;
END
$$;

-- Null if it is not there.
CREATE OR REPLACE FUNCTION warren.piece(of_vault uuid, for_blob bigint, for_number integer)
RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT p.content FROM piece AS p
        WHERE p.vault_id = of_vault AND p.blob = for_blob AND p.number = for_number
    );
END
$$;

CREATE OR REPLACE FUNCTION warren.pieces(of_vault uuid)
RETURNS TABLE (of_blob bigint, piece_number integer)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT p.blob, p.number FROM piece AS p WHERE p.vault_id = of_vault ORDER BY p.blob, p.number;
END
$$;

-- Writes the record, which names a blob from here on, and removes the pieces of all others. `WR004`
-- says that not all pieces of the blob are there: somebody else has written the record of another
-- blob meanwhile. Returns the newest arrival number.
CREATE OR REPLACE FUNCTION warren.replace_blob(
    of_vault uuid, version_before bigint, new_record bytea, kept_blob bigint, pieces_count integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    found_count bigint;
    root vault;
BEGIN
    PERFORM write_record(of_vault, version_before, new_record);
    SELECT count(*) INTO found_count
    FROM piece AS p WHERE p.vault_id = of_vault AND p.blob = kept_blob;
    IF found_count <> pieces_count THEN
        RAISE EXCEPTION 'pieces are missing' USING ERRCODE = 'WR004';
    END IF;
    DELETE FROM piece AS p WHERE p.vault_id = of_vault AND p.blob <> kept_blob;
    root := stored_root(of_vault);
    RETURN root.cursor;
END
$$;

-- Removes the pieces of a blob that no record names.
CREATE OR REPLACE FUNCTION warren.remove_blob(of_vault uuid, unnamed_blob bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM piece AS p WHERE p.vault_id = of_vault AND p.blob = unnamed_blob;
END
$$;
