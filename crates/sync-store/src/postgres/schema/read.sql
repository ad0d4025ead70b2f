-- Vaults in PostgreSQL: functions that read them.

-- Returns the vault's summary, after rebuilding it if messages were changed by hand.
CREATE OR REPLACE FUNCTION warren.checked_summary(for_vault uuid) RETURNS warren.vault_summary
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary := recorded_summary(for_vault);
BEGIN
    IF vault.stale THEN
        PERFORM rebuild(for_vault);
        vault := recorded_summary(for_vault);
    END IF;
    RETURN vault;
END
$$;

CREATE OR REPLACE FUNCTION warren.summary(of_vault uuid)
RETURNS TABLE (newest bigint, held bigint, held_bytes bigint, lanes bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary := checked_summary(of_vault);
BEGIN
    RETURN QUERY SELECT vault.last_seq, vault.messages_count, vault.messages_bytes, lanes_of(vault);
END
$$;

-- Returns the messages with the timestamps in `list`, which has 16 bytes for each, in the same
-- order, until their contents reach `bytes_max` bytes. Missing messages are left out. Places count
-- from 0.
CREATE OR REPLACE FUNCTION warren.messages(of_vault uuid, list bytea, bytes_max bigint)
RETURNS TABLE (places integer[], contents bytea[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT coalesce(array_agg(f.place ORDER BY f.place), '{}'),
        coalesce(array_agg(f.content ORDER BY f.place), '{}')
    FROM (
        SELECT n AS place, m.content,
            sum(m.content_bytes) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) - m.content_bytes
                AS bytes_before
        FROM generate_series(0, length(list) / 16 - 1) AS n
        CROSS JOIN LATERAL (
            SELECT k.content_bytes, k.content FROM message AS k
            WHERE k.vault_id = of_vault AND k.timestamp = substr(list, n * 16 + 1, 16)
            LIMIT 1
        ) AS m
    ) AS f
    WHERE f.bytes_before < bytes_max;
END
$$;

-- Returns the messages after the sequence number `after_seq`. Records the device's cursor without
-- waiting for the disk.
CREATE OR REPLACE FUNCTION warren.messages_after(
    of_vault uuid, after_seq bigint, count_max integer, bytes_max bigint,
    seen_device text, now_ms bigint, seen_node_id bigint, seen_unsent_count bigint
) RETURNS TABLE (
    list bytea, places integer[], contents bytea[],
    reached bigint, newest bigint, held bigint, lanes bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary := checked_summary(of_vault);
    since bigint := greatest(least(after_seq, vault.last_seq), cleared_until(vault));
    until bigint;
    picked record;
BEGIN
    list := '';
    places := '{}';
    contents := '{}';
    reached := vault.last_seq;
    -- The loop runs more than once only if messages were deleted by hand.
    WHILE since < vault.last_seq AND cardinality(places) = 0 LOOP
        until := least(since + greatest(count_max, 1), vault.last_seq);
        list := timestamps_between(of_vault, since, until);
        SELECT m.* INTO picked FROM messages(of_vault, list, greatest(bytes_max, 1)) AS m;
        places := picked.places;
        contents := picked.contents;
        IF cardinality(places) > 0 THEN
            reached := since + places[cardinality(places)] + 1;
        END IF;
        since := until;
    END LOOP;

    UPDATE device AS d SET last_seen_ms = now_ms, cursor = reached,
        node_id = coalesce(seen_node_id, d.node_id),
        unsent_count = coalesce(seen_unsent_count, d.unsent_count)
    WHERE d.vault_id = of_vault AND d.id = seen_device
        AND (d.cursor <> reached OR d.last_seen_ms + 60000 <= now_ms
            OR d.node_id IS DISTINCT FROM coalesce(seen_node_id, d.node_id)
            OR d.unsent_count <> coalesce(seen_unsent_count, d.unsent_count));
    -- A crash may undo this update: the list of devices would then show older values.
    PERFORM set_config('synchronous_commit', 'off', true);

    newest := vault.last_seq;
    held := vault.messages_count;
    lanes := lanes_of(vault);
    RETURN NEXT;
END
$$;

-- Returns the number after which the sequence numbers begin. The earlier ones were removed when the
-- vault was cleared.
CREATE OR REPLACE FUNCTION warren.cleared_until(vault warren.vault_summary) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((
        SELECT b.last_seq - b.messages_count FROM sequence_block AS b
        WHERE b.vault_id = vault.vault_id ORDER BY b.last_seq LIMIT 1
    ), vault.last_seq);
END
$$;

-- Returns the timestamps with the sequence numbers since + 1 … until. Sequence numbers have no
-- gaps, so the last row that overlaps this range is the first one whose `last_seq` reaches `until`.
CREATE OR REPLACE FUNCTION warren.timestamps_between(for_vault uuid, since bigint, until bigint)
RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
DECLARE
    reaches bigint;
    list bytea;
BEGIN
    SELECT min(b.last_seq) INTO reaches FROM sequence_block AS b
    WHERE b.vault_id = for_vault AND b.last_seq >= until;
    SELECT string_agg(
        substr(b.timestamps,
            (1 + 16 * greatest(since - (b.last_seq - b.messages_count), 0))::integer,
            (16 * (least(until, b.last_seq) - greatest(since, b.last_seq - b.messages_count)))
                ::integer),
        ''::bytea ORDER BY b.last_seq) INTO list
    FROM sequence_block AS b
    WHERE b.vault_id = for_vault AND b.last_seq > since AND b.last_seq <= reaches;
    RETURN list;
END
$$;

-- Returns the windows. If their sum differs from the vault's summary, both are rebuilt first.
CREATE OR REPLACE FUNCTION warren.windows(of_vault uuid)
RETURNS TABLE (window_id integer, held bigint, lanes bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM checked_summary(of_vault);
    -- This is one statement, so it compares values of the same moment.
    IF EXISTS (
        SELECT FROM vault_summary AS v CROSS JOIN LATERAL (
            SELECT coalesce(sum(w.messages_count), 0) AS count, coalesce(sum(w.lane0), 0) AS lane0,
                coalesce(sum(w.lane1), 0) AS lane1, coalesce(sum(w.lane2), 0) AS lane2,
                coalesce(sum(w.lane3), 0) AS lane3
            FROM fingerprint_window AS w WHERE w.vault_id = of_vault
        ) AS s
        WHERE v.vault_id = of_vault AND (v.messages_count, v.lane0, v.lane1, v.lane2, v.lane3)
            IS DISTINCT FROM (s.count, s.lane0, s.lane1, s.lane2, s.lane3)
    ) THEN
        PERFORM rebuild(of_vault);
    END IF;
    RETURN QUERY SELECT w.window_id, w.messages_count, ARRAY[w.lane0, w.lane1, w.lane2, w.lane3]
    FROM fingerprint_window AS w WHERE w.vault_id = of_vault ORDER BY w.window_id;
END
$$;

-- Cuts ranges of hybrid times (8 bytes: a timestamp without its node id) into buckets of
-- `bucket_count` messages; messages of one moment stay together. `until` is the first moment after
-- a bucket.
CREATE OR REPLACE FUNCTION warren.buckets(
    of_vault uuid, starts bytea[], ends bytea[], bucket_count bigint
) RETURNS TABLE (range_place integer, until bytea, held bigint, lanes bigint[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    since bytea;
    range_end bytea;
    nth bytea; -- the timestamp at which the bucket reaches `bucket_count` messages
    later bytea; -- the first timestamp of a later moment
BEGIN
    FOR place IN 1..cardinality(starts) LOOP
        since := starts[place];
        range_end := ends[place];
        WHILE since IS NOT NULL LOOP
            SELECT m.timestamp INTO nth FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp >= since AND m.timestamp < range_end
            ORDER BY m.timestamp LIMIT 1 OFFSET greatest(bucket_count, 1) - 1;
            SELECT m.timestamp INTO later FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp < range_end
                AND m.timestamp > substr(nth, 1, 8) || '\xffffffffffffffff'::bytea
            ORDER BY m.timestamp LIMIT 1;
            RETURN QUERY
            SELECT place, coalesce(substr(later, 1, 8), range_end), count(*),
                ARRAY[sum(upper_lane(m.hash_high)), sum(lower_lane(m.hash_high)),
                    sum(upper_lane(m.hash_low)), sum(lower_lane(m.hash_low))]::bigint[]
            FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp >= since
                AND m.timestamp < coalesce(later, range_end)
            HAVING count(*) > 0;
            since := later;
        END LOOP;
    END LOOP;
END
$$;

-- Returns the messages of ranges of hybrid times, a row per range. Each message has 16 bytes of
-- timestamp and 16 bytes of hash. There are at most `count_max` messages in all: the range that
-- reaches this number is the last.
CREATE OR REPLACE FUNCTION warren.entries(
    of_vault uuid, starts bytea[], ends bytea[], count_max bigint
) RETURNS TABLE (list bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    remaining bigint := count_max;
BEGIN
    FOR place IN 1..cardinality(starts) LOOP
        EXIT WHEN remaining <= 0;
        SELECT coalesce(string_agg(
            e.timestamp || int8send(e.hash_high) || int8send(e.hash_low), ''::bytea
            ORDER BY e.timestamp), '') INTO list
        FROM (
            SELECT m.timestamp, m.hash_high, m.hash_low FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp >= starts[place]
                AND m.timestamp < ends[place]
            ORDER BY m.timestamp LIMIT remaining
        ) AS e;
        remaining := remaining - length(list) / 32;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION warren.devices(of_vault uuid) RETURNS TABLE (
    id text, name bytea, node_id bigint, reached bigint, unsent_count bigint,
    last_seen_ms bigint, created_ms bigint
)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT d.id, d.name, d.node_id, d.cursor, d.unsent_count, d.last_seen_ms, d.created_ms
    FROM device AS d WHERE d.vault_id = of_vault ORDER BY d.created_ms, d.id COLLATE "C";
END
$$;

-- Returns the status for operators. `tables_bytes` is the size of the tables with all vaults on
-- this server.
CREATE OR REPLACE FUNCTION warren.status(of_vault uuid) RETURNS TABLE (
    newest bigint, held bigint, held_bytes bigint, lanes bigint[],
    devices_count bigint, database text, version text, tables_bytes bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    vault vault_summary := checked_summary(of_vault);
BEGIN
    RETURN QUERY SELECT vault.last_seq, vault.messages_count, vault.messages_bytes, lanes_of(vault),
        (SELECT count(*) FROM device AS d WHERE d.vault_id = of_vault),
        current_database()::text, current_setting('server_version'),
        (SELECT sum(pg_total_relation_size(t.oid))::bigint FROM pg_class AS t
         WHERE t.relnamespace = 'warren'::regnamespace AND t.relkind = 'r');
END
$$;

-- Returns the recorded summary, the same values computed from the messages' recorded hashes, and
-- the windows that differ. All values are of the same moment.
CREATE OR REPLACE FUNCTION warren.verify(of_vault uuid) RETURNS TABLE (
    newest bigint, held bigint, held_bytes bigint, lanes bigint[],
    true_newest bigint, true_held bigint, true_bytes bigint, true_lanes bigint[],
    wrong_windows integer[]
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    vault vault_summary := recorded_summary(of_vault);
BEGIN
    RETURN QUERY
    WITH computed AS (SELECT s.* FROM sums_of(of_vault) AS s),
    recorded AS (SELECT w.* FROM fingerprint_window AS w WHERE w.vault_id = of_vault)
    SELECT vault.last_seq, vault.messages_count, vault.messages_bytes, lanes_of(vault),
        greatest(vault.last_seq,
            (SELECT max(b.last_seq) FROM sequence_block AS b WHERE b.vault_id = of_vault)),
        coalesce(sum(c.messages_count), 0)::bigint,
        coalesce(sum(c.messages_bytes), 0)::bigint,
        ARRAY[coalesce(sum(c.lane0), 0), coalesce(sum(c.lane1), 0),
            coalesce(sum(c.lane2), 0), coalesce(sum(c.lane3), 0)]::bigint[],
        coalesce((
            SELECT array_agg(window_id)
            FROM computed AS d FULL JOIN recorded AS r USING (window_id)
            WHERE (d.messages_count, d.lane0, d.lane1, d.lane2, d.lane3)
                IS DISTINCT FROM (r.messages_count, r.lane0, r.lane1, r.lane2, r.lane3)
        ), '{}')
    FROM computed AS c;
END
$$;

-- Returns the messages after a timestamp, in order of time, with all their recorded values.
CREATE OR REPLACE FUNCTION warren.scan(
    of_vault uuid, after_stamp bytea, count_max integer, bytes_max bigint
) RETURNS TABLE (stamps bytea[], highs bigint[], lows bigint[], sizes integer[], contents bytea[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT coalesce(array_agg(f.timestamp ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.hash_high ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.hash_low ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.content_bytes ORDER BY f.timestamp), '{}'),
        coalesce(array_agg(f.content ORDER BY f.timestamp), '{}')
    FROM (
        SELECT p.*,
            sum(p.content_bytes) OVER (ORDER BY p.timestamp ROWS UNBOUNDED PRECEDING)
                - p.content_bytes AS bytes_before
        FROM (
            SELECT m.timestamp, m.hash_high, m.hash_low, m.content_bytes, m.content
            FROM message AS m
            WHERE m.vault_id = of_vault AND m.timestamp > after_stamp
            ORDER BY m.timestamp LIMIT count_max
        ) AS p
    ) AS f
    WHERE f.bytes_before <= bytes_max;
END
$$;

-- Returns the version of this schema.
CREATE OR REPLACE FUNCTION warren.version() RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT v.version FROM schema_version AS v);
END
$$;

-- Configures the functions that are called from outside. They run with the rights of the tables'
-- owner, so that Warren's own role needs no rights on the tables. The fixed search path prevents
-- other schemas from shadowing names. The planner settings enforce one plan that uses the primary
-- keys, whatever PostgreSQL assumes about tables that it has not analyzed yet.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = 'warren'::regnamespace
        AND (p.proargnames[1] = 'of_vault' OR p.proname IN ('mark_stale', 'version'))
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER '
            'SET search_path = warren, pg_temp SET plan_cache_mode = force_generic_plan '
            'SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off '
            'SET enable_bitmapscan = off SET enable_material = off SET jit = off '
            'SET work_mem = ''64MB''', f);
    END LOOP;
END
$$;
