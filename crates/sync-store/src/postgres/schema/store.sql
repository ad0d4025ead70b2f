-- Vaults in PostgreSQL: functions that change them.
--
-- A function whose first parameter is `of_vault uuid` is called from outside, one call per
-- transaction; the others, except `version`, are called from within the database. All functions
-- lock rows in this order: the gateway's state, messages by timestamp, windows by id, the vault's
-- summary, the device. So there are no deadlocks.

-- Returns the window of a timestamp: its upper 18 of 48 bits of milliseconds.
CREATE OR REPLACE FUNCTION warren.window_of(stamp bytea) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT (get_byte(stamp, 0) << 10) | (get_byte(stamp, 1) << 2) | (get_byte(stamp, 2) >> 6)
$$;

-- These two functions return the upper and the lower 32 bits of half a hash.
CREATE OR REPLACE FUNCTION warren.upper_lane(half bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS 'SELECT (half >> 32) & 4294967295';
CREATE OR REPLACE FUNCTION warren.lower_lane(half bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS 'SELECT half & 4294967295';

-- Stores the new messages. Arrays must be in order of timestamp, each timestamp once.
--
-- Messages and windows are inserted without a lock on the vault's row. That row comes last and
-- provides the sequence numbers; its lock is held until the commit, so numbers have no gaps and
-- become visible in their order.
CREATE OR REPLACE FUNCTION warren.store(
    of_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[],
    contents bytea[], messages_max bigint, bytes_max bigint,
    seen_device text, now_ms bigint, sent bigint, seen_unsent_count bigint, only_after bigint
) RETURNS TABLE (
    stored bigint, newest bigint, held bigint, held_bytes bigint, lanes bigint[], is_stale boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    new_ones record;
    vault vault_summary;
    fresh integer;
    clash text;
BEGIN
    SELECT i.* INTO new_ones
    FROM insert_new(of_vault, stamps, highs, lows, sizes, contents) AS i;
    fresh := length(new_ones.arrived) / 16;

    IF fresh < cardinality(stamps) THEN
        SELECT string_agg(encode(c.stamp, 'hex'), ',' ORDER BY c.stamp) INTO clash
        FROM (
            SELECT o.stamp FROM unnest(stamps, highs, lows) AS o (stamp, high, low)
            CROSS JOIN LATERAL (
                SELECT k.hash_high, k.hash_low FROM message AS k
                WHERE k.vault_id = of_vault AND k.timestamp = o.stamp
                LIMIT 1
            ) AS m
            WHERE m.hash_high <> o.high OR m.hash_low <> o.low
            ORDER BY o.stamp LIMIT 100
        ) AS c;
        IF clash IS NOT NULL THEN
            RAISE EXCEPTION 'another content for a known timestamp'
                USING ERRCODE = 'WR001', DETAIL = clash;
        END IF;
    END IF;

    IF fresh = 0 THEN
        -- The known messages are already on the disk, so a crash cannot lose any.
        PERFORM set_config('synchronous_commit', 'off', true);
        vault := recorded_summary(of_vault);
    ELSE
        vault := assign_sequence(of_vault, new_ones.arrived, new_ones.added, new_ones.added_bytes);
        PERFORM check_quota('messages', vault.messages_count, messages_max);
        PERFORM check_quota('bytes', vault.messages_bytes, bytes_max);
    END IF;
    IF vault.last_seq - fresh > only_after THEN
        RAISE EXCEPTION 'something has arrived meanwhile' USING ERRCODE = 'WR005';
    END IF;

    UPDATE device AS d SET last_seen_ms = now_ms,
        unsent_count = coalesce(seen_unsent_count, greatest(d.unsent_count - sent, 0)),
        cursor = CASE d.cursor WHEN vault.last_seq - fresh THEN vault.last_seq ELSE d.cursor END
    WHERE d.vault_id = of_vault AND d.id = seen_device
        AND (d.last_seen_ms + 60000 <= now_ms OR fresh > 0
            OR greatest(d.unsent_count, seen_unsent_count) > 0);

    RETURN QUERY SELECT fresh::bigint, vault.last_seq, vault.messages_count, vault.messages_bytes,
        lanes_of(vault), vault.stale;
END
$$;

-- Inserts the new messages. Returns their timestamps in order, 16 bytes each, and the sums that
-- they add to the windows.
CREATE OR REPLACE FUNCTION warren.insert_new(
    for_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[],
    contents bytea[], OUT arrived bytea, OUT added warren.fingerprint_window[],
    OUT added_bytes bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    -- The number of rows per INSERT: 5,000 to 20,000 limit the memory and cost no time.
    rows_max CONSTANT integer := 10000;
    until integer;
    batch record;
BEGIN
    arrived := '';
    added := '{}';
    added_bytes := 0;
    FOR since IN 1..cardinality(stamps) BY rows_max LOOP
        until := since + rows_max - 1;
        WITH inserted AS (
            INSERT INTO message AS m (
                vault_id, timestamp, hash_high, hash_low, content_bytes, content
            )
            SELECT for_vault, o.stamp, o.high, o.low, o.size, o.content
            FROM unnest(stamps[since:until], highs[since:until], lows[since:until],
                sizes[since:until], contents[since:until]) AS o (stamp, high, low, size, content)
            ORDER BY o.stamp
            ON CONFLICT (vault_id, timestamp) DO NOTHING
            RETURNING m.timestamp, m.hash_high, m.hash_low, m.content_bytes
        ), sums AS (
            SELECT window_of(i.timestamp) AS window_id, count(*) AS count,
                sum(i.content_bytes) AS bytes,
                sum(upper_lane(i.hash_high))::bigint AS lane0,
                sum(lower_lane(i.hash_high))::bigint AS lane1,
                sum(upper_lane(i.hash_low))::bigint AS lane2,
                sum(lower_lane(i.hash_low))::bigint AS lane3,
                string_agg(i.timestamp, ''::bytea ORDER BY i.timestamp) AS stamps
            FROM inserted AS i
            GROUP BY 1
        )
        SELECT array_agg(ROW(for_vault, s.window_id, s.count, s.lane0, s.lane1, s.lane2,
                s.lane3)::fingerprint_window) AS windows,
            sum(s.bytes)::bigint AS bytes,
            string_agg(s.stamps, ''::bytea ORDER BY s.window_id) AS stamps
        INTO batch FROM sums AS s;
        IF batch.windows IS NOT NULL THEN
            added := added || batch.windows;
            added_bytes := added_bytes + batch.bytes;
            arrived := arrived || batch.stamps;
        END IF;
    END LOOP;
END
$$;

-- Adds the messages that `insert_new` inserted to the windows and the summary, and assigns their
-- sequence numbers. There must be at least one message.
CREATE OR REPLACE FUNCTION warren.assign_sequence(
    for_vault uuid, arrived bytea, added warren.fingerprint_window[], added_bytes bigint
) RETURNS warren.vault_summary
LANGUAGE plpgsql AS $$
DECLARE
    fresh CONSTANT integer := length(arrived) / 16;
    vault vault_summary;
BEGIN
    PERFORM share_vault(for_vault);
    INSERT INTO fingerprint_window AS w
    SELECT for_vault, a.window_id, sum(a.messages_count), sum(a.lane0), sum(a.lane1), sum(a.lane2),
        sum(a.lane3)
    FROM unnest(added) AS a GROUP BY a.window_id ORDER BY a.window_id
    ON CONFLICT (vault_id, window_id) DO UPDATE
    SET messages_count = w.messages_count + excluded.messages_count,
        lane0 = w.lane0 + excluded.lane0, lane1 = w.lane1 + excluded.lane1,
        lane2 = w.lane2 + excluded.lane2, lane3 = w.lane3 + excluded.lane3;

    INSERT INTO vault_summary AS v
    SELECT for_vault, fresh, sum(a.messages_count), added_bytes, sum(a.lane0), sum(a.lane1),
        sum(a.lane2), sum(a.lane3), false
    FROM unnest(added) AS a
    ON CONFLICT (vault_id) DO UPDATE
    SET last_seq = v.last_seq + excluded.last_seq,
        messages_count = v.messages_count + excluded.messages_count,
        messages_bytes = v.messages_bytes + excluded.messages_bytes,
        lane0 = v.lane0 + excluded.lane0, lane1 = v.lane1 + excluded.lane1,
        lane2 = v.lane2 + excluded.lane2, lane3 = v.lane3 + excluded.lane3
    RETURNING v.* INTO vault;

    INSERT INTO sequence_block (vault_id, last_seq, messages_count, timestamps)
    VALUES (for_vault, vault.last_seq, fresh, arrived);
    RETURN vault;
END
$$;

CREATE OR REPLACE FUNCTION warren.check_quota(what text, wanted bigint, most bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wanted > most THEN
        RAISE EXCEPTION 'the quota is exceeded'
            USING ERRCODE = 'WR002', DETAIL = what || ',' || wanted;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION warren.lanes_of(vault warren.vault_summary) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS 'SELECT ARRAY[vault.lane0, vault.lane1, vault.lane2, vault.lane3]';

-- Returns the recorded summary of the vault, or zeros if the vault has no messages yet.
CREATE OR REPLACE FUNCTION warren.recorded_summary(for_vault uuid) RETURNS warren.vault_summary
LANGUAGE plpgsql STABLE AS $$
DECLARE
    vault vault_summary;
BEGIN
    SELECT v.* INTO vault FROM vault_summary AS v WHERE v.vault_id = for_vault;
    IF NOT FOUND THEN
        vault := ROW(for_vault, 0, 0, 0, 0, 0, 0, 0, false);
    END IF;
    RETURN vault;
END
$$;

-- Waits until no other transaction adds to the vault's windows, and blocks all others from it until
-- the commit. Row locks would not suffice: missing rows cannot be locked.
CREATE OR REPLACE FUNCTION warren.lock_vault(for_vault uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(for_vault::text, 0));
END
$$;

-- Takes the same lock in shared mode, for a transaction that adds to the windows. Such transactions
-- do not block each other.
CREATE OR REPLACE FUNCTION warren.share_vault(for_vault uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(for_vault::text, 0));
END
$$;

-- Rebuilds the windows and the vault's summary from the messages' recorded hashes and sizes.
CREATE OR REPLACE FUNCTION warren.rebuild(of_vault uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_vault(of_vault);
    DELETE FROM fingerprint_window AS w WHERE w.vault_id = of_vault;
    INSERT INTO fingerprint_window
    SELECT of_vault, s.window_id, s.messages_count, s.lane0, s.lane1, s.lane2, s.lane3
    FROM sums_of(of_vault) AS s ORDER BY s.window_id;
    INSERT INTO vault_summary AS v
    SELECT of_vault,
        coalesce((SELECT max(b.last_seq) FROM sequence_block AS b WHERE b.vault_id = of_vault), 0),
        coalesce(sum(s.messages_count), 0), coalesce(sum(s.messages_bytes), 0),
        coalesce(sum(s.lane0), 0), coalesce(sum(s.lane1), 0), coalesce(sum(s.lane2), 0),
        coalesce(sum(s.lane3), 0), false
    FROM sums_of(of_vault) AS s
    ON CONFLICT (vault_id) DO UPDATE
    SET last_seq = greatest(v.last_seq, excluded.last_seq),
        messages_count = excluded.messages_count, messages_bytes = excluded.messages_bytes,
        lane0 = excluded.lane0, lane1 = excluded.lane1, lane2 = excluded.lane2,
        lane3 = excluded.lane3, stale = false;
END
$$;

-- Computes the windows from the messages.
CREATE OR REPLACE FUNCTION warren.sums_of(for_vault uuid) RETURNS TABLE (
    window_id integer, messages_count bigint, messages_bytes bigint,
    lane0 bigint, lane1 bigint, lane2 bigint, lane3 bigint
)
LANGUAGE sql STABLE AS $$
    SELECT window_of(m.timestamp), count(*), sum(m.content_bytes)::bigint,
        sum(upper_lane(m.hash_high))::bigint, sum(lower_lane(m.hash_high))::bigint,
        sum(upper_lane(m.hash_low))::bigint, sum(lower_lane(m.hash_low))::bigint
    FROM warren.message AS m WHERE m.vault_id = for_vault GROUP BY 1
$$;

-- Corrects messages that were read with `scan`: sets the hashes that their contents have, deletes
-- those whose content is lost, so that the devices send them again, and rebuilds the sums.
CREATE OR REPLACE FUNCTION warren.rehash(
    of_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[], lost bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_vault(of_vault);
    UPDATE message AS m SET hash_high = o.high, hash_low = o.low, content_bytes = o.size
    FROM unnest(stamps, highs, lows, sizes) AS o (stamp, high, low, size)
    WHERE m.vault_id = of_vault AND m.timestamp = o.stamp;
    DELETE FROM message AS m WHERE m.vault_id = of_vault AND m.timestamp = ANY (lost);
    PERFORM rebuild(of_vault);
END
$$;

-- Replaces the contents of messages, all or none. The arrays are the same as for `store`, followed
-- by the hashes that the messages must have.
CREATE OR REPLACE FUNCTION warren.erase(
    of_vault uuid, stamps bytea[], highs bigint[], lows bigint[], sizes integer[],
    contents bytea[], old_highs bigint[], old_lows bigint[], bytes_max bigint
) RETURNS TABLE (
    erased bigint, newest bigint, held bigint, held_bytes bigint, lanes bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary := checked_summary(of_vault);
    fits bigint;
    changes warren.fingerprint_window[];
    more_bytes bigint;
BEGIN
    PERFORM lock_vault(of_vault);
    vault := recorded_summary(of_vault);
    SELECT count(*) INTO fits
    FROM unnest(stamps, highs, lows, old_highs, old_lows) AS o (stamp, high, low, old_high, old_low)
    JOIN message AS m ON m.vault_id = of_vault AND m.timestamp = o.stamp
    WHERE (m.hash_high, m.hash_low) IN ((o.old_high, o.old_low), (o.high, o.low));
    IF fits < cardinality(stamps) THEN
        RAISE EXCEPTION 'a message is not what it was taken for' USING ERRCODE = 'WR005';
    END IF;

    -- The changes of the sums: new hashes minus old ones. Here `messages_count` is the number of
    -- messages that change.
    SELECT array_agg(ROW(of_vault, s.window_id, s.count, s.lane0, s.lane1, s.lane2,
            s.lane3)::fingerprint_window),
        coalesce(sum(s.bytes), 0)
    INTO changes, more_bytes
    FROM (
        SELECT window_of(o.stamp) AS window_id, count(*) AS count,
            sum(o.size - m.content_bytes)::bigint AS bytes,
            sum(upper_lane(o.high) - upper_lane(m.hash_high))::bigint AS lane0,
            sum(lower_lane(o.high) - lower_lane(m.hash_high))::bigint AS lane1,
            sum(upper_lane(o.low) - upper_lane(m.hash_low))::bigint AS lane2,
            sum(lower_lane(o.low) - lower_lane(m.hash_low))::bigint AS lane3
        FROM unnest(stamps, highs, lows, sizes) AS o (stamp, high, low, size)
        JOIN message AS m ON m.vault_id = of_vault AND m.timestamp = o.stamp
        WHERE (m.hash_high, m.hash_low) <> (o.high, o.low)
        GROUP BY 1
    ) AS s;
    changes := coalesce(changes, '{}');

    UPDATE message AS m
    SET hash_high = o.high, hash_low = o.low, content_bytes = o.size, content = o.content
    FROM unnest(stamps, highs, lows, sizes, contents) AS o (stamp, high, low, size, content)
    WHERE m.vault_id = of_vault AND m.timestamp = o.stamp
        AND (m.hash_high, m.hash_low) <> (o.high, o.low);
    UPDATE fingerprint_window AS w SET lane0 = w.lane0 + c.lane0, lane1 = w.lane1 + c.lane1,
        lane2 = w.lane2 + c.lane2, lane3 = w.lane3 + c.lane3
    FROM unnest(changes) AS c
    WHERE w.vault_id = of_vault AND w.window_id = c.window_id;
    -- The trigger has marked the vault as stale, as if the change had been made by hand.
    UPDATE vault_summary AS v SET messages_bytes = v.messages_bytes + more_bytes, stale = false,
        lane0 = v.lane0 + coalesce((SELECT sum(c.lane0) FROM unnest(changes) AS c), 0),
        lane1 = v.lane1 + coalesce((SELECT sum(c.lane1) FROM unnest(changes) AS c), 0),
        lane2 = v.lane2 + coalesce((SELECT sum(c.lane2) FROM unnest(changes) AS c), 0),
        lane3 = v.lane3 + coalesce((SELECT sum(c.lane3) FROM unnest(changes) AS c), 0)
    WHERE v.vault_id = of_vault
    RETURNING v.* INTO vault;
    PERFORM check_quota('bytes', vault.messages_bytes, bytes_max);
    RETURN QUERY SELECT
        coalesce((SELECT sum(c.messages_count) FROM unnest(changes) AS c), 0)::bigint,
        vault.last_seq, vault.messages_count, vault.messages_bytes, lanes_of(vault);
END
$$;

-- Removes all rows of the vault.
CREATE OR REPLACE FUNCTION warren.remove_vault(of_vault uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM gateway_state AS g WHERE g.vault_id = of_vault;
    PERFORM lock_vault(of_vault);
    PERFORM delete_messages(of_vault);
    DELETE FROM vault_summary AS v WHERE v.vault_id = of_vault;
    DELETE FROM device AS d WHERE d.vault_id = of_vault;
    DELETE FROM blob_chunk AS c WHERE c.vault_id = of_vault;
END
$$;

-- Deletes the messages of a locked vault, with their windows and their sequence numbers.
CREATE OR REPLACE FUNCTION warren.delete_messages(for_vault uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    done bytea := '';
    until bytea;
BEGIN
    -- Deletes in batches, because the trigger receives all rows that a statement deletes.
    LOOP
        SELECT p.timestamp INTO until FROM (
            SELECT m.timestamp FROM message AS m
            WHERE m.vault_id = for_vault AND m.timestamp > done
            ORDER BY m.timestamp LIMIT 10000
        ) AS p
        ORDER BY p.timestamp DESC LIMIT 1;
        EXIT WHEN until IS NULL;
        DELETE FROM message AS m
        WHERE m.vault_id = for_vault AND m.timestamp > done AND m.timestamp <= until;
        done := until;
    END LOOP;
    DELETE FROM fingerprint_window AS w WHERE w.vault_id = for_vault;
    DELETE FROM sequence_block AS b WHERE b.vault_id = for_vault;
END
$$;

-- Marks vaults as stale whose messages were changed by hand. Warren itself only inserts messages,
-- deletes those of whole vaults, and updates or deletes them in `erase` and `rehash`, which then
-- correct the summary.
CREATE OR REPLACE FUNCTION warren.mark_stale() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vault_summary AS v SET stale = true
    WHERE v.vault_id IN (SELECT c.vault_id FROM changed AS c) AND NOT v.stale;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER message_deleted AFTER DELETE ON warren.message
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION warren.mark_stale();
CREATE OR REPLACE TRIGGER message_changed AFTER UPDATE ON warren.message
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION warren.mark_stale();

CREATE OR REPLACE FUNCTION warren.add_device(
    of_vault uuid, new_id text, new_name bytea, new_node_id bigint, new_cursor bigint,
    new_unsent_count bigint, new_last_seen_ms bigint, new_created_ms bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO device (
        vault_id, id, name, node_id, cursor, unsent_count, last_seen_ms, created_ms
    )
    VALUES (of_vault, new_id, new_name, new_node_id, new_cursor, new_unsent_count,
        new_last_seen_ms, new_created_ms);
END
$$;

CREATE OR REPLACE FUNCTION warren.remove_devices(of_vault uuid, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM device AS d WHERE d.vault_id = of_vault AND d.id = ANY (ids);
END
$$;
