-- The server behind our deliveries: who speaks here, whose keys we know.

ALTER TABLE fediverse_actors
    ADD COLUMN kind text NOT NULL DEFAULT 'Person'
        CHECK (kind IN ('Person', 'Service', 'Application', 'Group')),
    ADD COLUMN display_name text CHECK (length(display_name) <= 100),
    ADD COLUMN is_instance boolean NOT NULL DEFAULT false,
    ADD COLUMN approves_followers boolean NOT NULL DEFAULT false,
    ADD COLUMN key_made_at timestamptz NOT NULL DEFAULT now();
COMMENT ON TABLE fediverse_actors IS 'Who speaks on the fediverse; a name serves once, also after its deletion.';
COMMENT ON COLUMN fediverse_actors.private_key IS 'Sealed under the node key.';
COMMENT ON COLUMN fediverse_actors.approves_followers IS
    'manuallyApprovesFollowers: the application answers a Follow, not we.';
CREATE UNIQUE INDEX fediverse_actors_by_name ON fediverse_actors (lower(username))
    WHERE NOT is_instance;
CREATE UNIQUE INDEX fediverse_actors_instance ON fediverse_actors (is_instance)
    WHERE is_instance;

CREATE TABLE fediverse_followers (
    actor_id uuid NOT NULL REFERENCES fediverse_actors ON DELETE CASCADE,
    follower text NOT NULL CHECK (octet_length(follower) <= 2048),
    inbox text NOT NULL,
    shared_inbox text,
    follow_id text NOT NULL,
    accepted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (actor_id, follower)
);
COMMENT ON TABLE fediverse_followers IS
    'Who follows our actors; without accepted_at somebody has yet to answer.';
CREATE INDEX fediverse_followers_by_follower ON fediverse_followers (follower);
CREATE INDEX fediverse_followers_by_inbox ON fediverse_followers (inbox);
GRANT SELECT, INSERT, UPDATE, DELETE ON fediverse_followers TO postrider_frontd;
-- Whose inbox is gone follows nobody any more.
GRANT SELECT, DELETE ON fediverse_followers TO postrider_outboxd;

-- Keys of foreign actors. Without a key only the failure is remembered.
CREATE TABLE fediverse_keys (
    key_id text PRIMARY KEY CHECK (octet_length(key_id) <= 2048),
    owner text CHECK (octet_length(owner) <= 2048),
    pem text,
    inbox text,
    shared_inbox text,
    fetched_at timestamptz,
    refetched_at timestamptz,
    failed_until timestamptz,
    failed_finally boolean NOT NULL DEFAULT false,
    CHECK ((owner IS NULL) = (pem IS NULL) AND (pem IS NULL) = (fetched_at IS NULL)),
    CHECK (pem IS NOT NULL OR failed_until IS NOT NULL)
);
COMMENT ON TABLE fediverse_keys IS 'Keys of foreign actors, as last fetched.';
CREATE INDEX fediverse_keys_by_owner ON fediverse_keys (owner);
CREATE INDEX fediverse_keys_by_age ON fediverse_keys (fetched_at);
CREATE INDEX fediverse_keys_missing ON fediverse_keys (failed_until) WHERE pem IS NULL;

-- How often a server was asked for keys in its current minute.
CREATE UNLOGGED TABLE fediverse_fetches (
    origin text PRIMARY KEY,
    since timestamptz NOT NULL,
    fetches bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX fediverse_fetches_by_age ON fediverse_fetches (since);
COMMENT ON TABLE fediverse_fetches IS 'Keys fetched of a server in the minute since the first.';

CREATE TABLE fediverse_inbound (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    activity_id text NOT NULL UNIQUE CHECK (octet_length(activity_id) <= 2048),
    actor text NOT NULL,
    type text NOT NULL,
    object text,
    body text NOT NULL,
    actor_ids uuid[] NOT NULL DEFAULT '{}',
    received_at timestamptz NOT NULL DEFAULT now(),
    taken_at timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE fediverse_inbound IS
    'Verified activities, once each; fediverse_receive() hands them to the application.';
COMMENT ON COLUMN fediverse_inbound.actor_ids IS
    'Whose personal inboxes they came to; none: the shared one.';
CREATE INDEX fediverse_inbound_waiting ON fediverse_inbound (id) WHERE taken_at IS NULL;
CREATE INDEX fediverse_inbound_by_age ON fediverse_inbound (received_at);

ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity', 'rotate', 'actor'));

GRANT SELECT, INSERT, UPDATE, DELETE ON fediverse_keys TO postrider_frontd;
GRANT SELECT, INSERT, UPDATE ON fediverse_fetches, fediverse_inbound TO postrider_frontd;
GRANT SELECT, DELETE ON fediverse_keys, fediverse_fetches, fediverse_inbound
    TO postrider_janitord;

-- Both counts end at 10,000, so that a look costs the same whatever waits.
CREATE VIEW ops.fediverse_inbox AS
SELECT (SELECT count(*) FROM (SELECT FROM public.fediverse_inbound
         WHERE taken_at IS NULL LIMIT 10000) AS first) AS waiting,
       (SELECT now() - i.received_at FROM public.fediverse_inbound i
         WHERE i.taken_at IS NULL ORDER BY i.id LIMIT 1) AS oldest,
       (SELECT count(*) FROM (SELECT FROM public.fediverse_inbound
         WHERE received_at > now() - interval '1 hour' LIMIT 10000) AS lately) AS last_hour,
       (SELECT now() - max(i.received_at) FROM public.fediverse_inbound i) AS latest,
       (SELECT count(*) FROM (SELECT FROM public.fediverse_keys
         WHERE pem IS NULL AND failed_until > now() LIMIT 10000) AS missing) AS keys_missing;
COMMENT ON VIEW ops.fediverse_inbox IS
    'What came in over ActivityPub and waits for the application; keys that could not be had.';
GRANT SELECT ON ops.fediverse_inbox TO postrider_operator, postrider_monitor;

-- What an application may call. It takes in its own transaction: after a
-- rollback the same comes again, to whoever asks first.
CREATE FUNCTION fediverse_receive(at_most integer DEFAULT 100)
RETURNS TABLE (id bigint, activity_id text, actor text, type text, object text,
    body text, actor_ids uuid[], received_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH next AS MATERIALIZED (
        SELECT i.id FROM public.fediverse_inbound i WHERE i.taken_at IS NULL
         ORDER BY i.id LIMIT at_most FOR UPDATE SKIP LOCKED),
    taken AS (
        UPDATE public.fediverse_inbound i SET taken_at = now()
          FROM next WHERE i.id = next.id RETURNING i.*)
    SELECT t.id, t.activity_id, t.actor, t.type, t.object, t.body, t.actor_ids, t.received_at
      FROM taken t ORDER BY t.id;
$$;
COMMENT ON FUNCTION fediverse_receive(integer) IS
    'Activities that came in, the oldest first, each once; LISTEN postrider_inbox tells when.';

CREATE FUNCTION fediverse_actor(username text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.id FROM public.fediverse_actors a
     WHERE lower(a.username) = lower(fediverse_actor.username)
       AND NOT a.is_instance AND a.deleted_at IS NULL;
$$;
COMMENT ON FUNCTION fediverse_actor(text) IS 'The id of an actor of ours by its name.';

CREATE FUNCTION fediverse_followers(actor_id uuid)
RETURNS TABLE (follower text, inbox text, shared_inbox text, follow_id text, accepted boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT f.follower, f.inbox, f.shared_inbox, f.follow_id, f.accepted_at IS NOT NULL
      FROM public.fediverse_followers f
     WHERE f.actor_id = fediverse_followers.actor_id ORDER BY f.created_at, f.follower;
$$;
COMMENT ON FUNCTION fediverse_followers(uuid) IS
    'Who follows an actor, and who waits for an answer.';

-- The answer itself is an activity that the application enqueues.
CREATE FUNCTION fediverse_follower_settle(actor_id uuid, follower text, accept boolean)
RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH accepted AS (
        UPDATE public.fediverse_followers f SET accepted_at = coalesce(f.accepted_at, now())
         WHERE accept AND f.actor_id = fediverse_follower_settle.actor_id
           AND f.follower = fediverse_follower_settle.follower RETURNING 1),
    refused AS (
        DELETE FROM public.fediverse_followers f
         WHERE NOT accept AND f.actor_id = fediverse_follower_settle.actor_id
           AND f.follower = fediverse_follower_settle.follower RETURNING 1)
    SELECT EXISTS (SELECT FROM accepted) OR EXISTS (SELECT FROM refused);
$$;
COMMENT ON FUNCTION fediverse_follower_settle(uuid, text, boolean) IS
    'Accepts who waits, or removes a follower; false: there is none.';

REVOKE ALL ON FUNCTION fediverse_receive(integer), fediverse_actor(text),
    fediverse_followers(uuid), fediverse_follower_settle(uuid, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fediverse_receive(integer), fediverse_actor(text),
    fediverse_followers(uuid), fediverse_follower_settle(uuid, text, boolean)
    TO postrider_app;

-- Who is deleted here is gone there, too.
CREATE FUNCTION fediverse_actor_follows_person() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE public.fediverse_actors SET deleted_at = now()
     WHERE user_id = OLD.id AND deleted_at IS NULL;
    RETURN OLD;
END $$;
CREATE TRIGGER users_gone_from_fediverse AFTER UPDATE OF is_deleted ON users
    FOR EACH ROW WHEN (NEW.is_deleted AND NOT OLD.is_deleted)
    EXECUTE FUNCTION fediverse_actor_follows_person();
CREATE TRIGGER users_removed_from_fediverse BEFORE DELETE ON users
    FOR EACH ROW EXECUTE FUNCTION fediverse_actor_follows_person();
