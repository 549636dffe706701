-- The mutation log: what a node tells that asks what it has missed (sync).

-- Append-only, in the transaction of the change. mutated_at is when that was;
-- when a row may be read it says nothing about, since rows commit late.
ALTER TABLE federation_mutation_log
    ADD COLUMN hosts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN except_host text,
    ADD COLUMN homeward boolean NOT NULL DEFAULT false,
    ADD COLUMN xact xid8 NOT NULL DEFAULT pg_current_xact_id();
COMMENT ON TABLE federation_mutation_log IS 'Every change that is told to other nodes, for sync; 90 days.';
COMMENT ON COLUMN federation_mutation_log.payload IS
    'The event''s members after "timestamp"; NULL: a message, told in its current state.';
COMMENT ON COLUMN federation_mutation_log.hosts IS 'Who took part when it happened.';
COMMENT ON COLUMN federation_mutation_log.except_host IS 'Where it came from: it has it under its own id.';
COMMENT ON COLUMN federation_mutation_log.homeward IS 'For these hosts only, the home of its author.';
DROP INDEX federation_mutation_log_in_order;
CREATE INDEX federation_mutation_log_by_context
    ON federation_mutation_log (context_type, context_id, id);
CREATE INDEX federation_mutation_log_by_xact ON federation_mutation_log (xact);
-- Swept in order of id, which is that of age.
DROP INDEX federation_mutation_log_by_age;

-- What a host may read of the log, and since when it can be read. Whoever asks
-- pages by that time, compared with >: it only grows, and nobody sees a later
-- one before an earlier one.
CREATE TABLE federation_sync_entries (
    log_id bigint NOT NULL REFERENCES federation_mutation_log ON DELETE CASCADE,
    host text NOT NULL,
    context_type text NOT NULL,
    context_id text NOT NULL,
    ready_ms bigint NOT NULL,
    PRIMARY KEY (log_id, host)
);
CREATE INDEX federation_sync_entries_in_order
    ON federation_sync_entries (host, context_type, ready_ms, log_id);
CREATE INDEX federation_sync_entries_by_context
    ON federation_sync_entries (host, context_type, context_id, ready_ms);
COMMENT ON TABLE federation_sync_entries IS 'Rows of the mutation log by who may read them, in the order of sync.';

-- How far the log has been made readable: rows of transactions below from_xact,
-- and of those below to_xact the ones up to through_id.
CREATE TABLE federation_sync_state (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- Numbers of transactions mean something in one cluster only.
    cluster_id bigint NOT NULL,
    from_xact xid8 NOT NULL DEFAULT '2',
    to_xact xid8 NOT NULL DEFAULT '2',
    through_id bigint NOT NULL DEFAULT 0,
    last_ms bigint NOT NULL DEFAULT 0
);
INSERT INTO federation_sync_state (cluster_id)
SELECT system_identifier FROM pg_control_system();

CREATE FUNCTION sync_pending(s federation_sync_state) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (SELECT FROM federation_mutation_log l
                    WHERE l.xact >= s.to_xact
                      AND l.xact < pg_snapshot_xmin(pg_current_snapshot()))
        OR EXISTS (SELECT FROM federation_mutation_log l
                    WHERE l.xact >= s.from_xact AND l.xact < s.to_xact AND l.id > s.through_id)
        OR s.cluster_id <> (SELECT system_identifier FROM pg_control_system())
$$;

-- The log came here from another cluster (restored from a dump): transactions
-- of there are over, what was readable stays so. 0 is done, 2 is to be done.
CREATE FUNCTION sync_adopt() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE federation_mutation_log l
       SET xact = CASE WHEN l.xact >= s.to_xact OR l.xact >= s.from_xact AND l.id > s.through_id
                       THEN '2'::xid8 ELSE '0'::xid8 END
      FROM federation_sync_state s;
    UPDATE federation_sync_state
       SET cluster_id = (SELECT system_identifier FROM pg_control_system()),
           from_xact = '2', to_xact = '2', through_id = 0
$$;

-- The next round: what every transaction that is over has written since.
CREATE FUNCTION sync_round() RETURNS federation_sync_state
LANGUAGE sql SET search_path = pg_catalog, public, pg_temp AS $$
    WITH horizon AS MATERIALIZED (
        SELECT greatest(s.to_xact, pg_snapshot_xmin(pg_current_snapshot())) AS xact
          FROM federation_sync_state s)
    UPDATE federation_sync_state s
       SET from_xact = s.to_xact, to_xact = horizon.xact,
           through_id = coalesce((SELECT min(l.id) - 1 FROM federation_mutation_log l
                                   WHERE l.xact >= s.to_xact AND l.xact < horizon.xact), 0)
      FROM horizon
    RETURNING s.*
$$;

-- Native people of a conversation, a friendship (as its event tells it).
CREATE FUNCTION sync_natives(context_type text, context_id text, payload text)
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF context_type = 'dm' AND context_id ~ '^[0-9]{1,18}$' THEN
        RETURN QUERY SELECT u.id FROM dm_members m JOIN users u ON u.id = m.user_id
          WHERE m.dm_channel_id = context_id::bigint
            AND u.home_instance IS NULL AND NOT u.is_deleted;
    ELSIF context_type = 'friend' AND payload <> '' THEN
        -- Natives, and only they, have an origin as their instance.
        RETURN QUERY SELECT u.id
          FROM jsonb_each(('{' || payload || '}')::jsonb -> 'friendship') AS side(name, who)
          JOIN users u ON u.id::text = side.who ->> 'homeUserId'
         WHERE side.name IN ('from', 'to') AND side.who ->> 'homeInstance' LIKE 'http%'
           AND u.home_instance IS NULL AND NOT u.is_deleted;
    END IF;
EXCEPTION WHEN data_exception THEN
    RETURN; -- a payload that is no JSON must not stop the log
END $$;

-- Makes the next rows of the log readable, at most at_most of them; how many.
-- Late commits get a later time, since only rows below every transaction that
-- still runs are taken. Within a round the order is that of id: rows of one
-- conversation have theirs in the order of its lock.
--
-- A host that comes to a conversation finds what was there before, too: at the
-- first row that it takes part in, when somebody is added to a group, and when
-- one of our people declares an account there (mutation_type 'open'). With a
-- conversation or friendship come the profiles of our people in it.
CREATE FUNCTION sync_publish(at_most integer DEFAULT 2000) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
-- Plans are kept, and the first may be made while the tables are empty.
SET enable_seqscan = off AS $$
DECLARE
    s federation_sync_state;
    chunk bigint[];
    base bigint;
    span bigint;
BEGIN
    SELECT * INTO s FROM federation_sync_state;
    IF NOT sync_pending(s) THEN
        RETURN 0;
    END IF;
    SELECT * INTO s FROM federation_sync_state FOR UPDATE;
    IF s.cluster_id <> (SELECT system_identifier FROM pg_control_system()) THEN
        PERFORM sync_adopt();
        SELECT * INTO s FROM federation_sync_state;
    END IF;
    FOR round IN 1..2 LOOP
        chunk := ARRAY(SELECT l.id FROM federation_mutation_log l
                        WHERE l.id > s.through_id AND l.xact >= s.from_xact AND l.xact < s.to_xact
                        ORDER BY l.id LIMIT at_most);
        EXIT WHEN cardinality(chunk) > 0 OR round = 2;
        s := sync_round();
    END LOOP;
    IF cardinality(chunk) = 0 THEN
        RETURN 0;
    END IF;
    -- One millisecond each, unless that would run far ahead of the clock.
    base := greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, s.last_ms + 1);
    span := greatest(100, 2000 + (extract(epoch FROM clock_timestamp()) * 1000)::bigint - base);
    WITH fresh AS MATERIALIZED (
        SELECT l.id, l.context_type, l.context_id, l.mutation_type, l.payload, l.hosts
          FROM federation_mutation_log l WHERE l.id = ANY(chunk)),
    told AS MATERIALIZED (
        SELECT f.id, h.host, f.context_type, f.context_id
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
         WHERE f.mutation_type <> 'open'),
    joined AS MATERIALIZED (
        SELECT h.host, f.context_type, f.context_id, min(f.payload) AS payload
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
         WHERE f.mutation_type = 'member_add'
            OR f.mutation_type <> 'open' AND NOT EXISTS (
                SELECT FROM federation_sync_entries e
                 WHERE e.host = h.host AND e.context_type = f.context_type
                   AND e.context_id = f.context_id)
         GROUP BY h.host, f.context_type, f.context_id
        UNION
        SELECT h.host, 'dm', m.dm_channel_id::text, NULL
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
          JOIN dm_members m ON m.user_id = f.context_id::bigint
         WHERE f.mutation_type = 'open'),
    opened AS MATERIALIZED (
        SELECT j.host, j.context_type, j.context_id FROM joined j
        UNION
        SELECT j.host, 'profile', n.id::text
          FROM joined j CROSS JOIN LATERAL
               sync_natives(j.context_type, j.context_id, j.payload) AS n(id)
        UNION
        SELECT h.host, 'profile', f.context_id
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
         WHERE f.mutation_type = 'open'),
    found AS (
        SELECT t.*, 0 AS phase FROM told t
        UNION ALL
        SELECT l.id, o.host, l.context_type, l.context_id, 1
          FROM opened o
          JOIN federation_mutation_log l
            ON l.context_type = o.context_type AND l.context_id = o.context_id
         WHERE l.mutation_type <> 'open' AND NOT l.homeward
           AND l.except_host IS DISTINCT FROM o.host
           AND (l.xact < s.from_xact OR l.xact < s.to_xact AND l.id <= chunk[cardinality(chunk)])
           AND NOT o.host = ANY(l.hosts)
           AND NOT EXISTS (SELECT FROM federation_sync_entries e
                            WHERE e.log_id = l.id AND e.host = o.host)),
    placed AS (
        SELECT f.*, dense_rank() OVER (ORDER BY f.phase, f.id) - 1 AS place,
               count(*) OVER () AS many
          FROM found f),
    made AS (
        INSERT INTO federation_sync_entries (log_id, host, context_type, context_id, ready_ms)
        SELECT p.id, p.host, p.context_type, p.context_id,
               base + p.place / greatest(1, (p.many + span - 1) / span)
          FROM placed p
            ON CONFLICT DO NOTHING
        RETURNING ready_ms)
    UPDATE federation_sync_state
       SET through_id = chunk[cardinality(chunk)],
           last_ms = greatest(last_ms, (SELECT max(ready_ms) FROM made));
    RETURN cardinality(chunk);
END $$;
COMMENT ON FUNCTION sync_publish(integer) IS 'Makes what has been committed to the mutation log readable.';
REVOKE ALL ON FUNCTION sync_publish(integer), sync_pending(federation_sync_state), sync_adopt(),
    sync_round(), sync_natives(text, text, text) FROM PUBLIC;

-- Whoever declares an account elsewhere takes part from there, too.
CREATE FUNCTION sync_open() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    added constant text[] := ARRAY(
        SELECT DISTINCT h.host
          FROM jsonb_array_elements(CASE jsonb_typeof(NEW.replicated_instances)
                   WHEN 'array' THEN NEW.replicated_instances ELSE '[]' END) AS e(value)
         CROSS JOIN substring(lower(coalesce(e.value ->> 'origin', e.value ->> 'domain'))
                   FROM '^(?:[a-z][a-z0-9+.-]*://)?(\[[^]]+\]|[^/:?#]+)') AS h(host)
         WHERE h.host IS NOT NULL AND NOT OLD.replicated_instances @> jsonb_build_array(e.value));
BEGIN
    INSERT INTO federation_mutation_log (context_type, context_id, mutation_type, entity_id, hosts)
    SELECT 'profile', NEW.id::text, 'open', NEW.id::text, added
     WHERE cardinality(added) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER users_sync_open AFTER UPDATE OF replicated_instances ON users FOR EACH ROW
    WHEN (NEW.home_instance IS NULL AND NOT NEW.is_deleted
          AND NEW.replicated_instances IS DISTINCT FROM OLD.replicated_instances)
    EXECUTE FUNCTION sync_open();

-- What is gone is told no more: a conversation's events with its row, a
-- person's profile with the person.
CREATE FUNCTION sync_conversation_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM federation_mutation_log l USING gone
     WHERE l.context_type = 'dm' AND l.context_id = gone.id::text;
    RETURN NULL;
END $$;
CREATE TRIGGER dm_channels_sync_gone AFTER DELETE ON dm_channels
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION sync_conversation_gone();

CREATE FUNCTION sync_person_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM federation_mutation_log
     WHERE context_type = 'profile' AND context_id = NEW.id::text;
    RETURN NULL;
END $$;
CREATE TRIGGER users_sync_gone AFTER UPDATE OF is_deleted ON users FOR EACH ROW
    WHEN (NEW.is_deleted AND NOT OLD.is_deleted)
    EXECUTE FUNCTION sync_person_gone();

ALTER TABLE peer_rates ADD COLUMN syncs bigint NOT NULL DEFAULT 0;

GRANT SELECT ON federation_sync_entries TO postrider_frontd;
GRANT EXECUTE ON FUNCTION sync_publish(integer) TO postrider_frontd, postrider_janitord;
