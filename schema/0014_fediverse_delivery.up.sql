-- ActivityPub delivery: what the queue needs beyond the RFC's columns, one row
-- a domain (its lease, its circuit breaker, what it understands), and the one
-- function that applications call.

-- ---- the queue ----

ALTER TABLE fediverse_outbound_queue
    -- Rows of one moment in the order in which they were written.
    ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY,
    -- How it travels; NULL: as the settings say.
    ADD COLUMN transport text CHECK (transport ~ '^[a-z_]{1,32}$'),
    -- Of a whole server: a 410 there condemns the domain.
    ADD COLUMN shared boolean NOT NULL DEFAULT false,
    -- Attempts answered 401, and those whose name led nowhere: both have
    -- bounds of their own.
    ADD COLUMN unauthorized integer NOT NULL DEFAULT 0,
    ADD COLUMN unresolved integer NOT NULL DEFAULT 0,
    -- One bad row must not stop all others: its domain has to fit as a key.
    ADD CONSTRAINT fediverse_outbound_queue_domain_check
        CHECK (length(target_domain) BETWEEN 1 AND 260),
    ALTER COLUMN created_at SET DEFAULT clock_timestamp(),
    ALTER COLUMN id SET DEFAULT gen_random_uuid();
COMMENT ON TABLE fediverse_outbound_queue IS
    'Activities owed to inboxes; failed and dead rows are its dead letters.';

-- A repeated enqueue is harmless. Both texts are bounded below what fits.
CREATE UNIQUE INDEX fediverse_outbound_once
    ON fediverse_outbound_queue (activity_id COLLATE "C", target_inbox COLLATE "C");
-- The first row of a domain is the first that is due.
CREATE INDEX fediverse_outbound_by_domain
    ON fediverse_outbound_queue
        (target_domain COLLATE "C", next_retry_at NULLS FIRST, created_at, seq)
    WHERE status = 'pending';
-- What is over, for whoever sweeps.
CREATE INDEX fediverse_outbound_delivered
    ON fediverse_outbound_queue (delivered_at) WHERE status = 'delivered';
CREATE INDEX fediverse_outbound_ended
    ON fediverse_outbound_queue (created_at) WHERE status IN ('failed', 'dead');

-- ---- domains ----

CREATE TABLE fediverse_domains (
    domain text COLLATE "C" PRIMARY KEY CHECK (length(domain) BETWEEN 1 AND 260),
    state text NOT NULL DEFAULT 'closed'
        CHECK (state IN ('closed', 'open', 'half_open', 'dead')),
    -- Counted failures since the last success: within ten minutes, on how many
    -- different days, and how often a pause has followed a pause.
    failures integer NOT NULL DEFAULT 0,
    failures_since timestamptz,
    last_failure_at timestamptz,
    failure_days integer NOT NULL DEFAULT 0,
    last_failure_day date,
    pauses integer NOT NULL DEFAULT 0,
    -- Nothing is attempted before: a pause, or what it asked for.
    not_before timestamptz NOT NULL DEFAULT '-infinity',
    -- Its shared inbox answered 410: only a verified request or an operator
    -- brings it back.
    gone boolean NOT NULL DEFAULT false,
    died_at timestamptz,
    probed_at timestamptz,
    -- Which signatures it takes, as far as we know; what an operator wants.
    style text CHECK (style IN ('cavage', 'rfc9421')),
    style_at timestamptz,
    style_wanted text CHECK (style_wanted IN ('cavage', 'rfc9421')),
    last_success_at timestamptz,
    last_code integer,
    last_error text,
    served_at timestamptz,
    lease_worker bigint,
    lease_token uuid,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- An operator wants nothing to do with it, nor with hosts below it.
    blocked_at timestamptz,
    blocked_by text,
    blocked_reason text
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE fediverse_domains IS
    'Servers that activities go to: lease, circuit breaker, style of signatures.';

CREATE INDEX fediverse_domains_blocked ON fediverse_domains (domain)
    WHERE blocked_at IS NOT NULL;

-- A block is of a host, whatever the port, and of all hosts below it.
CREATE FUNCTION fediverse_is_blocked(asked text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    host text := regexp_replace(asked, ':[0-9]+$', '');
BEGIN
    IF NOT EXISTS (SELECT FROM fediverse_domains d WHERE d.blocked_at IS NOT NULL) THEN
        RETURN false;
    END IF;
    WHILE host IS NOT NULL LOOP
        IF EXISTS (SELECT FROM fediverse_domains d
                    WHERE d.domain = host COLLATE "C" AND d.blocked_at IS NOT NULL) THEN
            RETURN true;
        END IF;
        host := substring(host FROM '\.(.+)$');
    END LOOP;
    RETURN false;
END $$;

-- Inboxes that answered that they are no more.
CREATE TABLE fediverse_gone_inboxes (
    inbox text COLLATE "C" PRIMARY KEY,
    domain text COLLATE "C" NOT NULL,
    code integer NOT NULL,
    gone_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX fediverse_gone_inboxes_by_domain ON fediverse_gone_inboxes (domain);
COMMENT ON TABLE fediverse_gone_inboxes IS
    'Inboxes that answered 410, or 404 within the last day: nothing is sent there.';

-- ---- settings ----

ALTER TABLE instance_settings
    ADD COLUMN fediverse_first_style text NOT NULL DEFAULT 'cavage'
        CHECK (fediverse_first_style IN ('cavage', 'rfc9421')),
    ADD COLUMN fediverse_transport text NOT NULL DEFAULT 'http_signed'
        CHECK (fediverse_transport ~ '^[a-z_]{1,32}$');

-- ---- enqueue ----

-- The domain of an inbox in the one form that everything counts by: lower
-- case, A-labels, no default port.
CREATE FUNCTION fediverse_domain_of(inbox text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part constant text[] := regexp_match(inbox,
        '^(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?(?:[/?][!-~]*)?$', 'i');
    host constant text := rtrim(lower(part[2]), '.');
    usual constant text := CASE lower(part[1]) WHEN 'http' THEN '80' ELSE '443' END;
BEGIN
    IF part IS NULL OR octet_length(inbox) > 1024 OR position('#' IN inbox) > 0
            OR host = '' OR length(host) > 253 OR host ~ '^[.-]|\.[.-]|-(\.|$)'
            OR coalesce(part[3], '1')::integer > 65535 THEN
        RETURN NULL;
    END IF;
    RETURN host || CASE WHEN coalesce(part[3], usual) = usual THEN '' ELSE ':' || part[3] END;
END $$;

-- One activity for one inbox. Part of the caller's transaction: what it rolls
-- back was never sent. A repeated call answers the row that is there. Towards a
-- server that is blocked, or a server or an inbox that is known to be gone, the
-- row is kept with that end.
CREATE FUNCTION fediverse_enqueue(
    activity_id text, payload_json text, target_inbox text,
    actor_user_id uuid DEFAULT NULL, transport text DEFAULT NULL,
    shared_inbox boolean DEFAULT false)
RETURNS TABLE (id uuid, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    wanted constant text := fediverse_domain_of(target_inbox);
    -- Scheme and host in lower case, so that an inbox is one inbox.
    spelled constant text := lower(substring(target_inbox FROM '^[A-Za-z]+://[^/?]*'))
        || regexp_replace(target_inbox, '^[A-Za-z]+://[^/?]*', '');
    ended text;
    why text;
BEGIN
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'target_inbox is no http(s) URL with an ASCII host, or too long'
            USING ERRCODE = 'PT400';
    END IF;
    IF coalesce(activity_id, '') = '' OR octet_length(activity_id) > 1024 THEN
        RAISE EXCEPTION 'activity_id is missing, or longer than 1024 bytes'
            USING ERRCODE = 'PT400';
    END IF;
    IF payload_json IS NULL OR octet_length(payload_json) > 262144 THEN
        RAISE EXCEPTION 'payload_json is missing, or larger than 256 KiB'
            USING ERRCODE = 'PT413';
    END IF;
    IF NOT fediverse_is_object(payload_json) THEN
        RAISE EXCEPTION 'payload_json is no JSON object' USING ERRCODE = 'PT400';
    END IF;
    IF transport !~ '^[a-z_]{1,32}$' THEN
        RAISE EXCEPTION 'transport is no name of one' USING ERRCODE = 'PT400';
    END IF;
    IF actor_user_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM fediverse_actors a WHERE a.id = fediverse_enqueue.actor_user_id) THEN
        RAISE EXCEPTION 'no actor %', actor_user_id USING ERRCODE = 'PT404';
    END IF;
    IF fediverse_is_blocked(wanted) THEN
        ended := 'dead';
        why := 'the server is blocked';
    ELSE
        SELECT 'dead', 'the server is gone or has not answered for days' INTO ended, why
          FROM fediverse_domains d WHERE d.domain = wanted AND d.state = 'dead';
    END IF;
    IF ended IS NULL THEN
        SELECT 'failed', format('the inbox is gone (%s)', g.code) INTO ended, why
          FROM fediverse_gone_inboxes g
         WHERE g.inbox = spelled AND (g.code = 410 OR g.gone_at > now() - interval '1 day');
    END IF;
    RETURN QUERY
    INSERT INTO fediverse_outbound_queue AS q (id, activity_id, payload_json, target_inbox,
            target_domain, status, last_error, created_at, actor_user_id, transport, shared)
    VALUES (gen_random_uuid(), fediverse_enqueue.activity_id, fediverse_enqueue.payload_json,
            spelled, wanted, coalesce(ended, 'pending'), why, clock_timestamp(),
            fediverse_enqueue.actor_user_id, fediverse_enqueue.transport,
            coalesce(fediverse_enqueue.shared_inbox, false))
        ON CONFLICT (activity_id, target_inbox) DO NOTHING
    RETURNING q.id, q.status;
    IF NOT FOUND THEN
        RETURN QUERY
        SELECT q.id, q.status FROM fediverse_outbound_queue q
         WHERE q.activity_id COLLATE "C" = fediverse_enqueue.activity_id
           AND q.target_inbox COLLATE "C" = spelled;
    END IF;
END $$;
COMMENT ON FUNCTION fediverse_enqueue(text, text, text, uuid, text, boolean) IS
    'Owes an activity to an inbox; within the caller''s transaction. The payload goes out as it is.';

CREATE FUNCTION fediverse_is_object(payload text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN json_typeof(payload::json) = 'object';
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;

-- ---- revival ----

-- A domain that lives after all: its verified request, an operator. Rows that
-- died meanwhile stay dead; what is enqueued from now on goes out.
CREATE FUNCTION fediverse_revive(revived text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE fediverse_domains
       SET state = 'closed', failures = 0, failures_since = NULL, failure_days = 0,
           last_failure_day = NULL, pauses = 0, not_before = '-infinity', gone = false,
           died_at = NULL
     WHERE domain = revived
       AND (state <> 'closed' OR failures > 0 OR failure_days > 0);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM fediverse_gone_inboxes WHERE domain = revived;
    PERFORM pg_notify('postrider_activity', '');
    RETURN true;
END $$;
COMMENT ON FUNCTION fediverse_revive(text) IS
    'A server lives: ends its pause or its death. False when there was none.';

-- What a verified request of a server was signed with, or what it says that it
-- knows, it takes as well, until a delivery shows better. Of servers that we
-- never sent to nothing is kept.
CREATE FUNCTION fediverse_signs_rfc9421(signer text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE fediverse_domains d SET style = 'rfc9421', style_at = now()
     WHERE d.domain = signer
       AND coalesce(d.style_at, '-infinity') < now() - interval '30 days';
$$;
COMMENT ON FUNCTION fediverse_signs_rfc9421(text) IS
    'A server knows RFC 9421: it signed a verified request so, or its actors say so.';

-- ---- who may ----

REVOKE ALL ON FUNCTION fediverse_domain_of(text), fediverse_is_object(text),
    fediverse_is_blocked(text),
    fediverse_enqueue(text, text, text, uuid, text, boolean), fediverse_revive(text),
    fediverse_signs_rfc9421(text)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fediverse_enqueue(text, text, text, uuid, text, boolean)
    TO postrider_app, postrider_frontd, postrider_outboxd;
GRANT EXECUTE ON FUNCTION fediverse_revive(text) TO postrider_frontd, postrider_operator;
GRANT EXECUTE ON FUNCTION fediverse_signs_rfc9421(text) TO postrider_frontd;
GRANT EXECUTE ON FUNCTION fediverse_is_object(text) TO postrider_frontd, postrider_outboxd;
-- Operators look through views, whose functions run as whoever looks.
GRANT EXECUTE ON FUNCTION fediverse_domain_of(text) TO postrider_outboxd;
GRANT EXECUTE ON FUNCTION fediverse_is_blocked(text)
    TO postrider_frontd, postrider_outboxd, postrider_operator, postrider_monitor;
GRANT EXECUTE ON FUNCTION fediverse_revive(text) TO postrider_outboxd;
GRANT SELECT, INSERT, UPDATE ON fediverse_domains TO postrider_outboxd;
GRANT SELECT ON fediverse_domains, fediverse_gone_inboxes TO postrider_frontd;
GRANT INSERT, UPDATE ON fediverse_gone_inboxes TO postrider_outboxd;
GRANT SELECT ON fediverse_gone_inboxes TO postrider_outboxd;
GRANT SELECT, DELETE ON fediverse_domains, fediverse_gone_inboxes TO postrider_janitord;
