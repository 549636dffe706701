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

-- The host of an origin, or of an instance in any spelling; NULL: of none.
CREATE FUNCTION host_of(instance text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT substring(lower(instance) FROM
        '^(?:[a-z][a-z0-9+.-]*://)?(\[[0-9a-f:.]+\]|[^][/:?#@ ]+)(?::[0-9]+)?(?:[/?#].*)?$')
$$;

-- The hosts where a person has declared accounts.
CREATE FUNCTION hosts_declared(instances jsonb) RETURNS SETOF text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT host_of(coalesce(e.value ->> 'origin', e.value ->> 'domain'))
      FROM jsonb_array_elements(CASE jsonb_typeof(instances) WHEN 'array' THEN instances
                                     ELSE '[]' END) AS e(value)
     WHERE host_of(coalesce(e.value ->> 'origin', e.value ->> 'domain')) IS NOT NULL
$$;

-- Whoever declares an account elsewhere takes part from there, too.
CREATE FUNCTION sync_open() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    added constant text[] := ARRAY(SELECT hosts_declared(NEW.replicated_instances)
                                   EXCEPT SELECT hosts_declared(OLD.replicated_instances));
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
-- Only sync_publish() writes it.
GRANT SELECT ON federation_sync_state TO postrider_janitord;
GRANT EXECUTE ON FUNCTION sync_publish(integer, interval) TO postrider_frontd, postrider_janitord;

-- ---- repairs (specification, section 17) ----
-- Of what older servers, imports and hands have left. Run at the end of this
-- migration and on request (ops.repair()). A second run changes nothing. Each
-- answers a row for what it changed ('repaired') and for what it will not guess
-- ('conflict'): nobody is taken for somebody else, and only a pair of exactly
-- the same two people is one conversation.

CREATE TYPE ops.repair_line AS (repair text, target text, outcome text, detail text);

CREATE FUNCTION ops.repair_audit(repair text, many bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO public.audit (action, reason, rows) SELECT repair, 'repair', many WHERE many > 0
$$;

-- How others name a person.
CREATE FUNCTION ops.home_id_of(person bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT coalesce(u.home_user_id, CASE WHEN u.home_instance IS NULL THEN u.id::text END)
      FROM users u WHERE u.id = person
$$;

-- Home instances are hosts.
CREATE FUNCTION ops.repair_home_instances() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    who record;
    many bigint := 0;
BEGIN
    FOR who IN SELECT u.id, u.home_instance, u.home_user_id, host_of(u.home_instance) AS host,
                      u.is_deleted
                 FROM users u
                WHERE u.home_instance IS NOT NULL
                  AND u.home_instance IS DISTINCT FROM host_of(u.home_instance)
                ORDER BY u.id FOR UPDATE LOOP
        IF who.host IS NULL THEN
            RETURN NEXT ROW('home_instance', who.id::text, 'conflict',
                who.home_instance || ' names no host')::ops.repair_line;
        ELSIF NOT who.is_deleted AND EXISTS (
                SELECT FROM users o WHERE o.home_instance = who.host AND NOT o.is_deleted
                   AND o.home_user_id = who.home_user_id AND o.id <> who.id) THEN
            RETURN NEXT ROW('home_instance', who.id::text, 'conflict',
                'somebody is known as ' || who.home_user_id || ' of ' || who.host)::ops.repair_line;
        ELSE
            UPDATE users SET home_instance = who.host WHERE id = who.id;
            many := many + 1;
            RETURN NEXT ROW('home_instance', who.id::text, 'repaired',
                who.home_instance || ' is ' || who.host)::ops.repair_line;
        END IF;
    END LOOP;
    UPDATE dm_channels SET owner_home_instance = host_of(owner_home_instance)
     WHERE owner_home_instance IS DISTINCT FROM host_of(owner_home_instance)
       AND host_of(owner_home_instance) IS NOT NULL;
    PERFORM ops.repair_audit('repair_home_instances', many);
END $$;

-- A group has an owner: the person it remembers, or the first of its members.
CREATE FUNCTION ops.repair_owner() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    orphan record;
    heir record;
    many bigint := 0;
BEGIN
    FOR orphan IN SELECT c.* FROM dm_channels c
                   WHERE c.owner_id IS NULL AND c.deleted_at IS NULL
                     AND (c.is_group OR c.federated_id ~
                          '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$')
                   ORDER BY c.id FOR UPDATE LOOP
        IF orphan.pair_low IS NOT NULL OR orphan.pair_high IS NOT NULL THEN
            RETURN NEXT ROW('owner', orphan.id::text, 'conflict', 'a group that is a pair as well')::ops.repair_line;
            CONTINUE;
        END IF;
        SELECT u.id, u.username, coalesce(u.home_user_id, u.id::text) AS home_id, u.home_instance
          INTO heir
          FROM dm_members m JOIN users u ON u.id = m.user_id
         WHERE m.dm_channel_id = orphan.id AND NOT u.is_deleted
         ORDER BY coalesce(u.home_user_id, u.id::text) = orphan.owner_home_user_id
              AND u.home_instance IS NOT DISTINCT FROM orphan.owner_home_instance DESC NULLS LAST,
               u.id
         LIMIT 1;
        IF heir.id IS NULL THEN
            RETURN NEXT ROW('owner', orphan.id::text, 'conflict', 'nobody is left in it')::ops.repair_line;
            CONTINUE;
        END IF;
        UPDATE dm_channels
           SET is_group = true, owner_id = heir.id, owner_home_user_id = heir.home_id,
               owner_home_instance = heir.home_instance
         WHERE id = orphan.id;
        many := many + 1;
        RETURN NEXT ROW('owner', orphan.id::text, 'repaired', heir.username || ' owns it')::ops.repair_line;
    END LOOP;
    PERFORM ops.repair_audit('repair_owner', many);
END $$;

-- Pairs that concern another node have the id that both sides can compute. One
-- that is there is never overwritten.
CREATE FUNCTION ops.repair_federated_ids() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    pair record;
    many bigint := 0;
BEGIN
    FOR pair IN
        SELECT c.id, c.federated_id,
               CASE WHEN n.a IS NOT NULL AND n.b IS NOT NULL THEN left(encode(sha256(convert_to(
                   least(n.a, n.b) || ':' || greatest(n.a, n.b), 'UTF8')), 'hex'), 32)
               END AS computed
          FROM dm_channels c
          JOIN users a ON a.id = c.pair_low JOIN users b ON b.id = c.pair_high
         CROSS JOIN LATERAL (SELECT ops.home_id_of(a.id) COLLATE "C" AS a,
                                    ops.home_id_of(b.id) COLLATE "C" AS b) n
         WHERE NOT c.is_group AND (a.home_instance IS NOT NULL OR b.home_instance IS NOT NULL)
         ORDER BY c.id FOR UPDATE OF c LOOP
        IF pair.federated_id = pair.computed THEN
            CONTINUE;
        ELSIF pair.computed IS NULL THEN
            IF pair.federated_id IS NULL THEN
                RETURN NEXT ROW('federated_id', pair.id::text, 'conflict',
                    'one of the two is not known by an id of home yet')::ops.repair_line;
            END IF;
        ELSIF pair.federated_id IS NOT NULL THEN
            RETURN NEXT ROW('federated_id', pair.id::text, 'conflict',
                'is ' || pair.federated_id || ', computed ' || pair.computed)::ops.repair_line;
        ELSE
            UPDATE dm_channels SET federated_id = pair.computed WHERE id = pair.id;
            many := many + 1;
            RETURN NEXT ROW('federated_id', pair.id::text, 'repaired', pair.computed)::ops.repair_line;
        END IF;
    END LOOP;
    PERFORM ops.repair_audit('repair_federated_ids', many);
END $$;

-- What was said in one goes to the other, as changes that clients see.
CREATE FUNCTION ops.merge_pair(kept bigint, gone bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    moved bigint[] := ARRAY(SELECT m.id FROM dm_messages m WHERE m.dm_channel_id = gone
                             ORDER BY m.created_at, m.id);
BEGIN
    UPDATE dm_messages SET dm_channel_id = kept WHERE dm_channel_id = gone;
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT kept, c.seq + k.place, 'message_created', m.id, m.user_id
      FROM dm_channels c, unnest(moved) WITH ORDINALITY AS k(id, place)
      JOIN dm_messages m ON m.id = k.id
     WHERE c.id = kept;
    UPDATE dm_channels SET seq = seq + cardinality(moved) WHERE id = kept;
    UPDATE dm_members k SET closed = k.closed AND g.closed
      FROM dm_members g
     WHERE k.dm_channel_id = kept AND g.dm_channel_id = gone AND g.user_id = k.user_id;
    INSERT INTO dm_members (dm_channel_id, user_id, closed)
    SELECT kept, user_id, closed FROM dm_members WHERE dm_channel_id = gone
        ON CONFLICT DO NOTHING;
    -- Whoever has read further, by the messages' own time.
    INSERT INTO read_states AS r (user_id, channel_id, last_read_message_id, updated_at)
    SELECT user_id, kept, last_read_message_id, updated_at FROM read_states WHERE channel_id = gone
        ON CONFLICT (user_id, channel_id) DO UPDATE
           SET last_read_message_id = excluded.last_read_message_id,
               updated_at = excluded.updated_at
         WHERE (SELECT m.created_at FROM dm_messages m WHERE m.id = excluded.last_read_message_id)
             > coalesce((SELECT m.created_at FROM dm_messages m WHERE m.id = r.last_read_message_id),
                        '-infinity');
    UPDATE federation_sync_entries SET context_id = kept::text
     WHERE context_type = 'dm' AND context_id = gone::text;
    UPDATE federation_mutation_log SET context_id = kept::text
     WHERE context_type = 'dm' AND context_id = gone::text;
    DELETE FROM dm_channels WHERE id = gone;
    RETURN cardinality(moved);
END $$;

-- One conversation of a pair: the oldest. Pairs that have lost their two names
-- are those who are in it, if they are two.
CREATE FUNCTION ops.repair_duplicate_channels() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    found record;
    many bigint := 0;
    kept_id bigint;
    moved bigint;
BEGIN
    FOR found IN
        SELECT c.id, c.pair_low, c.pair_high, c.owner_home_user_id, m.people, m.low, m.high
          FROM dm_channels c
         CROSS JOIN LATERAL (SELECT count(*) AS people, min(user_id) AS low, max(user_id) AS high
                               FROM dm_members WHERE dm_channel_id = c.id) m
         WHERE NOT c.is_group AND (c.pair_low IS NULL OR c.pair_high IS NULL)
           AND (c.federated_id IS NULL OR length(c.federated_id) = 32)
         ORDER BY c.created_at, c.id FOR UPDATE OF c LOOP
        IF found.people <> 2 OR coalesce(found.pair_low, found.low) <> found.low
           OR coalesce(found.pair_high, found.high) <> found.high THEN
            RETURN NEXT ROW('duplicate_channel', found.id::text, 'conflict',
                'a pair of ' || found.people)::ops.repair_line;
            CONTINUE;
        ELSIF found.owner_home_user_id IS NOT NULL THEN
            RETURN NEXT ROW('duplicate_channel', found.id::text, 'conflict',
                'may have been a group')::ops.repair_line;
            CONTINUE;
        END IF;
        SELECT c.id INTO kept_id FROM dm_channels c
         WHERE c.pair_low = found.low AND c.pair_high = found.high AND NOT c.is_group
         ORDER BY c.created_at, c.id LIMIT 1 FOR UPDATE;
        many := many + 1;
        IF kept_id IS NULL THEN
            UPDATE dm_channels SET pair_low = found.low, pair_high = found.high WHERE id = found.id;
            RETURN NEXT ROW('duplicate_channel', found.id::text, 'repaired', 'its two people are named')::ops.repair_line;
        ELSE
            moved := ops.merge_pair(kept_id, found.id);
            RETURN NEXT ROW('duplicate_channel', found.id::text, 'repaired',
                moved || ' messages moved to ' || kept_id)::ops.repair_line;
        END IF;
    END LOOP;
    FOR found IN
        SELECT c.id, k.id AS kept
          FROM dm_channels c
         CROSS JOIN LATERAL (
               SELECT o.id FROM dm_channels o
                WHERE NOT o.is_group AND o.pair_low = c.pair_low AND o.pair_high = c.pair_high
                ORDER BY o.created_at, o.id LIMIT 1) k
         WHERE NOT c.is_group AND k.id <> c.id
         ORDER BY c.id FOR UPDATE OF c LOOP
        moved := ops.merge_pair(found.kept, found.id);
        many := many + 1;
        RETURN NEXT ROW('duplicate_channel', found.id::text, 'repaired',
            moved || ' messages moved to ' || found.kept)::ops.repair_line;
    END LOOP;
    FOR found IN
        SELECT c.federated_id, string_agg(c.id::text, ' ' ORDER BY c.created_at, c.id) AS ids
          FROM dm_channels c WHERE c.is_group AND c.federated_id IS NOT NULL
         GROUP BY c.federated_id HAVING count(*) > 1 ORDER BY 1 LOOP
        RETURN NEXT ROW('duplicate_channel', found.ids, 'conflict',
            'groups of one id, ' || found.federated_id)::ops.repair_line;
    END LOOP;
    PERFORM ops.repair_audit('repair_duplicate_channels', many);
END $$;

-- Messages that were written here, or came homeward, and are not in the log.
CREATE FUNCTION ops.repair_mutation_log() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    filled record;
    many bigint := 0;
BEGIN
    FOR filled IN
        WITH missing AS (
            SELECT m.id, m.dm_channel_id, m.created_at, u.home_instance,
                   host_of(m.source_instance) AS source
              FROM dm_messages m JOIN users u ON u.id = m.user_id
             WHERE m.type = 'user' AND m.created_at > now() - interval '90 days'
               AND (m.source_instance IS NULL OR u.home_instance IS NULL)
               AND NOT EXISTS (
                   SELECT FROM federation_mutation_log l
                    WHERE l.context_type = 'dm' AND l.context_id = m.dm_channel_id::text
                      AND l.entity_id = m.id::text AND l.mutation_type = 'create')),
        told AS (
            SELECT c.dm_channel_id, array_agg(DISTINCT h.host) AS hosts
              FROM (SELECT DISTINCT dm_channel_id FROM missing) c
              JOIN dm_members m ON m.dm_channel_id = c.dm_channel_id
              JOIN users u ON u.id = m.user_id AND NOT u.is_deleted
             CROSS JOIN LATERAL (SELECT u.home_instance UNION
                                 SELECT hosts_declared(u.replicated_instances)) h(host)
             WHERE h.host IS NOT NULL
             GROUP BY c.dm_channel_id),
        added AS (
            INSERT INTO federation_mutation_log (context_type, context_id, mutation_type,
                   entity_id, mutated_at, hosts, except_host, homeward)
            SELECT 'dm', x.dm_channel_id::text, 'create', x.id::text, x.created_at,
                   CASE WHEN x.home_instance IS NOT NULL THEN ARRAY[x.home_instance]
                        ELSE coalesce(array_remove(t.hosts, x.source), '{}') END,
                   x.source, x.home_instance IS NOT NULL
              FROM missing x LEFT JOIN told t USING (dm_channel_id)
             ORDER BY x.created_at, x.id
            RETURNING context_id)
        SELECT context_id, count(*) AS messages FROM added GROUP BY context_id ORDER BY 1 LOOP
        many := many + filled.messages;
        RETURN NEXT ROW('mutation_log', filled.context_id, 'repaired',
            filled.messages || ' messages')::ops.repair_line;
    END LOOP;
    PERFORM ops.repair_audit('repair_mutation_log', many);
END $$;

-- All of them, in an order in which none undoes another.
CREATE FUNCTION ops.repair() RETURNS SETOF ops.repair_line
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM ops.repair_home_instances();
    RETURN QUERY SELECT * FROM ops.repair_owner();
    RETURN QUERY SELECT * FROM ops.repair_duplicate_channels();
    RETURN QUERY SELECT * FROM ops.repair_federated_ids();
    RETURN QUERY SELECT * FROM ops.repair_mutation_log();
END $$;
COMMENT ON FUNCTION ops.repair() IS 'Puts right what older servers and imports have left; a row for each thing.';

REVOKE ALL ON FUNCTION host_of(text), hosts_declared(jsonb),
    ops.repair_audit(text, bigint), ops.home_id_of(bigint), ops.merge_pair(bigint, bigint),
    ops.repair(), ops.repair_home_instances(), ops.repair_owner(), ops.repair_federated_ids(),
    ops.repair_duplicate_channels(), ops.repair_mutation_log() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ops.repair(), ops.repair_home_instances(), ops.repair_owner(),
    ops.repair_federated_ids(), ops.repair_duplicate_channels(), ops.repair_mutation_log()
    TO postrider_operator;

SELECT count(*) FROM ops.repair();
