-- The mutation log: what a node tells that asks what it has missed (sync).

-- Append-only, in the transaction of the change. mutated_at is when that was;
-- when a row may be read it says nothing about, since rows commit late.
ALTER TABLE federation_mutation_log
    ADD COLUMN hosts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN except_host text,
    ADD COLUMN homeward boolean NOT NULL DEFAULT false;
COMMENT ON TABLE federation_mutation_log IS 'Every change that is told to other nodes, for sync; 90 days.';
COMMENT ON COLUMN federation_mutation_log.payload IS
    'The event''s members after "timestamp"; NULL: a message, told in its current state.';
COMMENT ON COLUMN federation_mutation_log.hosts IS 'Who took part when it happened.';
COMMENT ON COLUMN federation_mutation_log.except_host IS 'Where it came from: it has it under its own id.';
COMMENT ON COLUMN federation_mutation_log.homeward IS 'For these hosts only, the home of its author.';
DROP INDEX federation_mutation_log_in_order;
CREATE INDEX federation_mutation_log_by_context
    ON federation_mutation_log (context_type, context_id, id);
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

-- How far the log is settled (no transaction can add a row up to there), and
-- how far it has been made readable.
CREATE TABLE federation_sync_state (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    through_id bigint NOT NULL DEFAULT 0,
    settled_id bigint NOT NULL DEFAULT 0,
    -- Up to here it is settled once these have ended.
    mark_id bigint NOT NULL DEFAULT 0,
    mark_holders text[] NOT NULL DEFAULT '{}',
    last_ms bigint NOT NULL DEFAULT 0
);
INSERT INTO federation_sync_state DEFAULT VALUES;

CREATE FUNCTION sync_drawn() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END
      FROM federation_mutation_log_id_seq
$$;

-- Transactions that may have a row which nobody sees yet: whoever writes to the
-- log holds this lock, from before the row's id is drawn until the row is seen.
CREATE FUNCTION sync_writers() RETURNS text[]
LANGUAGE sql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
      FROM pg_locks l
     WHERE l.locktype = 'relation' AND l.relation = 'public.federation_mutation_log'::regclass
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND l.mode = 'RowExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
$$;

-- Up to which id no row can appear any more; waits at most patience for those
-- who write now. Ids are drawn before writers are looked for, in this order.
CREATE FUNCTION sync_settled(patience interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    drawn constant bigint := sync_drawn();
    holders constant text[] := sync_writers();
    until constant timestamptz := clock_timestamp() + patience;
    mark record;
BEGIN
    WHILE holders && sync_writers() LOOP
        IF clock_timestamp() >= until THEN
            SELECT mark_id, mark_holders INTO mark FROM federation_sync_state FOR UPDATE;
            IF mark.mark_holders && sync_writers() THEN
                RETURN 0;
            END IF;
            UPDATE federation_sync_state SET mark_id = drawn, mark_holders = holders;
            RETURN mark.mark_id;
        END IF;
        PERFORM pg_sleep(0.002);
    END LOOP;
    RETURN drawn;
END $$;

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
-- They are taken in order of id, which within a conversation is the order of
-- its row lock, and only as far as the log is settled: what commits late keeps
-- what follows back, and gets a later time than all that was told.
--
-- A host that comes to a conversation finds what was there before, too: at the
-- first row that it takes part in, when somebody is added to a group, and when
-- one of our people declares an account there (mutation_type 'open'). With a
-- conversation or friendship come the profiles of our people in it.
CREATE FUNCTION sync_publish(at_most integer DEFAULT 2000, patience interval DEFAULT '0')
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
-- Plans are kept, and the first may be made while the tables are empty.
SET enable_seqscan = off AS $$
DECLARE
    settled bigint := 0;
    s federation_sync_state;
    chunk bigint[];
    last_id bigint;
    base bigint;
    span bigint;
BEGIN
    SELECT * INTO s FROM federation_sync_state;
    IF s.through_id >= sync_drawn() THEN
        RETURN 0;
    END IF;
    IF s.through_id >= s.settled_id THEN
        settled := sync_settled(patience);
    END IF;
    SELECT * INTO s FROM federation_sync_state FOR UPDATE;
    settled := greatest(settled, s.settled_id);
    chunk := ARRAY(SELECT l.id FROM federation_mutation_log l
                    WHERE l.id > s.through_id AND l.id <= settled ORDER BY l.id LIMIT at_most);
    last_id := CASE WHEN cardinality(chunk) < at_most THEN settled
                    ELSE chunk[cardinality(chunk)] END;
    UPDATE federation_sync_state
       SET settled_id = settled, through_id = greatest(through_id, last_id);
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
    joined AS MATERIALIZED ( -- and found what was there before before_id
        SELECT h.host, f.context_type, f.context_id, min(f.payload) AS payload,
               coalesce(max(f.id) FILTER (WHERE f.mutation_type = 'member_add'), min(f.id))
                   AS before_id
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
         WHERE f.mutation_type = 'member_add'
            OR f.mutation_type <> 'open' AND NOT EXISTS (
                SELECT FROM federation_sync_entries e
                 WHERE e.host = h.host AND e.context_type = f.context_type
                   AND e.context_id = f.context_id)
         GROUP BY h.host, f.context_type, f.context_id
        UNION ALL
        SELECT h.host, 'dm', m.dm_channel_id::text, NULL, f.id
          FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
          JOIN dm_members m ON m.user_id = f.context_id::bigint
         WHERE f.mutation_type = 'open'),
    opened AS MATERIALIZED (
        SELECT o.host, o.context_type, o.context_id, max(o.before_id) AS before_id
          FROM (SELECT j.host, j.context_type, j.context_id, j.before_id FROM joined j
                UNION ALL
                SELECT j.host, 'profile', n.id::text, j.before_id
                  FROM joined j CROSS JOIN LATERAL
                       sync_natives(j.context_type, j.context_id, j.payload) AS n(id)
                UNION ALL
                SELECT h.host, 'profile', f.context_id, f.id
                  FROM fresh f CROSS JOIN LATERAL unnest(f.hosts) AS h(host)
                 WHERE f.mutation_type = 'open') o
         GROUP BY o.host, o.context_type, o.context_id),
    found AS (
        SELECT t.*, 0 AS phase FROM told t
        UNION ALL
        SELECT l.id, o.host, l.context_type, l.context_id, 1
          FROM opened o
          JOIN federation_mutation_log l
            ON l.context_type = o.context_type AND l.context_id = o.context_id
         WHERE l.mutation_type <> 'open' AND NOT l.homeward
           AND l.except_host IS DISTINCT FROM o.host
           AND l.id < o.before_id
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
       SET last_ms = greatest(last_ms, (SELECT max(ready_ms) FROM made));
    RETURN cardinality(chunk);
END $$;
COMMENT ON FUNCTION sync_publish(integer, interval) IS 'Makes what has been committed to the mutation log readable.';
REVOKE ALL ON FUNCTION sync_publish(integer, interval), sync_settled(interval), sync_drawn(), sync_writers(),
    sync_natives(text, text, text) FROM PUBLIC;

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
GRANT EXECUTE ON FUNCTION sync_publish(integer, interval) TO postrider_frontd, postrider_janitord;
