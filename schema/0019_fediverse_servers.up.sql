-- Servers that operators block, and inboxes that lead to other servers.

-- ---- blocks ----

-- A host in the spelling of domains, without its port: a block is of all ports.
CREATE FUNCTION ops.host_named(typed text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    named constant text := regexp_replace(fediverse_domain_of(
        CASE WHEN typed ~ '^\s*[A-Za-z]+://' THEN '' ELSE 'https://' END || btrim(typed)), ':[0-9]+$', '');
BEGIN
    IF named IS NULL THEN
        RAISE EXCEPTION '% is no host', coalesce(typed, 'NULL')
            USING ERRCODE = 'PT400', HINT = 'an international name is written with xn--';
    END IF;
    RETURN named;
END $$;

-- The host itself, any port of it, or a host below it?
CREATE FUNCTION ops.host_covers(host text, domain text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(domain, ':[0-9]+$', '') = host
        OR right(regexp_replace(domain, ':[0-9]+$', ''), length(host) + 1) = '.' || host
$$;

-- What waits for it is dead at once; a request under way may arrive. Its
-- domains are locked first, as whoever books results does.
CREATE FUNCTION ops.domain_block(domain text, why text, dry_run boolean DEFAULT false)
RETURNS TABLE (named text, entries bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    ended constant text := 'the server is blocked';
    waiting text[];
BEGIN
    PERFORM ops.need_why(domain_block.why);
    named := ops.host_named(domain_block.domain);
    IF NOT dry_run THEN
        INSERT INTO fediverse_domains AS d (domain, blocked_at, blocked_by, blocked_reason)
        VALUES (named, now(), session_user, domain_block.why)
            ON CONFLICT ON CONSTRAINT fediverse_domains_pkey DO UPDATE
           SET blocked_at = coalesce(d.blocked_at, excluded.blocked_at),
               blocked_by = excluded.blocked_by, blocked_reason = excluded.blocked_reason;
        PERFORM FROM fediverse_domains d WHERE ops.host_covers(named, d.domain)
          ORDER BY d.domain FOR NO KEY UPDATE;
    END IF;
    waiting := ARRAY(SELECT w.domain FROM ops.fediverse_by_domain w
                      WHERE ops.host_covers(named, w.domain));
    IF dry_run THEN
        entries := (SELECT count(*) FROM fediverse_outbound_queue q
                     WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = ANY (waiting));
        meaning := 'would be blocked; nothing was changed';
    ELSE
        UPDATE fediverse_outbound_queue q SET status = 'dead', next_retry_at = NULL, last_error = ended
         WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = ANY (waiting);
        GET DIAGNOSTICS entries = ROW_COUNT;
        PERFORM pg_notify('postrider_activity', '');
        PERFORM ops.audit_write('domain_block', named, domain_block.why, entries);
        meaning := format('blocked, and all hosts below it; entries that waited are dead; to end that: ops.domain_unblock(%L)', named);
    END IF;
    RETURN NEXT;
END $$;

-- What died meanwhile stays so until it is replayed.
CREATE FUNCTION ops.domain_unblock(domain text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (named text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    was boolean;
BEGIN
    named := ops.host_named(domain_unblock.domain);
    was := EXISTS (SELECT FROM fediverse_domains d
                    WHERE d.domain = named COLLATE "C" AND d.blocked_at IS NOT NULL);
    IF NOT dry_run THEN
        UPDATE fediverse_domains d
           SET blocked_at = NULL, blocked_by = NULL, blocked_reason = NULL
         WHERE d.domain = named COLLATE "C" AND d.blocked_at IS NOT NULL;
        PERFORM ops.audit_write('domain_unblock', named, domain_unblock.reason, was::int);
    END IF;
    state := CASE WHEN fediverse_is_blocked(named) THEN 'blocked'
        ELSE coalesce((SELECT ops.domain_state(d) FROM fediverse_domains d
                        WHERE d.domain = named COLLATE "C"), 'new') END;
    meaning := CASE WHEN NOT was AND state = 'blocked' THEN 'it is a host above it that is blocked'
        WHEN NOT was THEN 'it was not blocked'
        WHEN dry_run THEN 'would be unblocked; nothing was changed'
        ELSE format('unblocked; what died meanwhile: ops.fediverse_replay(%L, why => ...)', named) END;
    RETURN NEXT;
END $$;

-- ---- how to sign ----

-- Which style of signatures a domain gets first, whatever the setting and what
-- is remembered say; NULL: as those say.
CREATE FUNCTION ops.domain_style(domain text, style text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (named text, wanted text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    named := ops.domain_named(domain_style.domain);
    wanted := domain_style.style;
    IF named IS NULL THEN
        RAISE EXCEPTION 'say which domain' USING ERRCODE = 'PT404';
    END IF;
    IF wanted NOT IN ('cavage', 'rfc9421') THEN
        RAISE EXCEPTION 'a style is cavage or rfc9421' USING ERRCODE = 'PT400';
    END IF;
    IF NOT dry_run THEN
        INSERT INTO fediverse_domains AS d (domain, style_wanted) VALUES (named, wanted)
            ON CONFLICT ON CONSTRAINT fediverse_domains_pkey DO UPDATE
           SET style_wanted = excluded.style_wanted;
        PERFORM ops.audit_write('domain_style', named,
            concat_ws(', ', coalesce(wanted, 'as it shows'), domain_style.reason), 1);
    END IF;
    meaning := CASE WHEN dry_run THEN 'nothing was changed'
        WHEN wanted IS NULL THEN 'begins with what has worked, else as fediverse_first_style says'
        ELSE format('begins with %s, and with the other one after a 400 or 401', wanted) END;
    RETURN NEXT;
END $$;

-- ---- inboxes that moved ----

-- Deliveries follow the redirect and count for where they were sent; whose
-- inbox it is, is asked where it is now.
CREATE TABLE fediverse_moved_inboxes (
    inbox text COLLATE "C" PRIMARY KEY,
    domain text COLLATE "C" NOT NULL,
    leads_to text NOT NULL,
    actor text,
    names text,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),
    asked_at timestamptz,
    answered_at timestamptz
);
COMMENT ON TABLE fediverse_moved_inboxes IS
    'Inboxes that lead to another server, and what their actor says of it.';
COMMENT ON COLUMN fediverse_moved_inboxes.actor IS 'A follower whose it is; NULL: nobody we know.';
COMMENT ON COLUMN fediverse_moved_inboxes.names IS 'Which one its actor names now.';
CREATE INDEX fediverse_moved_inboxes_by_age ON fediverse_moved_inboxes (seen_at);
CREATE INDEX fediverse_followers_by_shared_inbox ON fediverse_followers (shared_inbox)
    WHERE shared_inbox IS NOT NULL;

ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity', 'rotate', 'actor', 'inbox'));

-- A delivery was led away. Its actor is asked at most once an hour; nobody
-- waits for the answer.
CREATE FUNCTION fediverse_inbox_moved(moved text, leads_to text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    whose constant text := (SELECT f.follower FROM fediverse_followers f
         WHERE f.inbox = moved OR f.shared_inbox = moved
         ORDER BY f.inbox = moved DESC, f.created_at LIMIT 1);
    server constant text := fediverse_domain_of(regexp_replace(whose, '#.*$', ''));
BEGIN
    INSERT INTO fediverse_moved_inboxes AS m (inbox, domain, leads_to, actor)
    VALUES (moved, fediverse_domain_of(moved), fediverse_inbox_moved.leads_to, whose)
        ON CONFLICT (inbox) DO UPDATE
       SET leads_to = excluded.leads_to, actor = excluded.actor, seen_at = now();
    IF server IS NULL OR fediverse_is_blocked(server) THEN
        RETURN;
    END IF;
    UPDATE fediverse_moved_inboxes m SET asked_at = now()
     WHERE m.inbox = moved AND coalesce(m.asked_at, '-infinity') < now() - interval '1 hour';
    IF FOUND THEN
        INSERT INTO s2s_requests (kind, origin, body, deadline)
        VALUES ('inbox', lower(split_part(whose, ':', 1)) || '://' || server,
                convert_to(moved, 'UTF8'), now() + interval '1 minute');
    END IF;
END $$;
COMMENT ON FUNCTION fediverse_inbox_moved(text, text) IS
    'A delivery to an inbox was led to another server.';

-- Its actor's document has come. A shared inbox is its whole server's.
CREATE FUNCTION fediverse_inbox_found(moved text, inbox_now text, shared_now text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    whose constant text := (SELECT m.actor FROM fediverse_moved_inboxes m WHERE m.inbox = moved);
BEGIN
    UPDATE fediverse_moved_inboxes m SET answered_at = now(),
           names = CASE WHEN EXISTS (SELECT FROM fediverse_followers f
                                      WHERE f.follower = whose AND f.shared_inbox = moved
                                        AND f.inbox <> moved) THEN shared_now ELSE inbox_now END
     WHERE m.inbox = moved;
    UPDATE fediverse_followers f SET shared_inbox = shared_now
     WHERE f.shared_inbox = moved
       AND substring(f.follower FROM '^[^/]+//[^/]+/') = substring(whose FROM '^[^/]+//[^/]+/');
    UPDATE fediverse_followers f SET inbox = inbox_now, shared_inbox = shared_now
     WHERE f.follower = whose;
    UPDATE fediverse_keys k SET inbox = inbox_now, shared_inbox = shared_now
     WHERE k.owner = whose;
END $$;
COMMENT ON FUNCTION fediverse_inbox_found(text, text, text) IS
    'What the actor of an inbox that moved names now: followers and keys learn it.';

CREATE VIEW ops.moved_inboxes AS
SELECT m.inbox, m.leads_to, m.actor, m.names, now() - m.first_seen_at AS since,
       now() - m.seen_at AS last_seen, now() - m.asked_at AS asked,
       (SELECT count(*) FROM (SELECT FROM public.fediverse_outbound_queue q
         WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = m.domain
           AND q.target_inbox = m.inbox LIMIT 1000) AS upto) AS waiting,
       CASE WHEN m.actor IS NULL THEN 'of no follower: who enqueues for it has to ask its actor where it is now'
            WHEN m.answered_at IS NULL THEN 'its actor has not answered yet; asked at most once an hour, when a delivery is led away'
            WHEN m.names = m.inbox THEN 'its actor still names it; deliveries follow the redirect'
            WHEN m.names IS NULL THEN 'its actor names no such inbox any more; followers know'
            ELSE 'followers have what its actor names; what is enqueued for the old one follows the redirect' END AS meaning
  FROM public.fediverse_moved_inboxes m
 ORDER BY m.seen_at DESC, m.inbox;
COMMENT ON VIEW ops.moved_inboxes IS
    'Inboxes whose deliveries are led to another server, the latest first.';

-- What an application may call: it keeps inboxes of its own.
CREATE FUNCTION fediverse_moved_inboxes()
RETURNS TABLE (inbox text, leads_to text, actor text, names text, seen_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.inbox, m.leads_to, m.actor, m.names, m.seen_at
      FROM public.fediverse_moved_inboxes m ORDER BY m.seen_at DESC, m.inbox;
$$;
COMMENT ON FUNCTION fediverse_moved_inboxes() IS
    'Inboxes that lead to another server: where to, and what their actor names now.';

-- ---- who may ----

REVOKE ALL ON FUNCTION ops.host_named(text), ops.host_covers(text, text),
    ops.domain_block(text, text, boolean), ops.domain_unblock(text, text, boolean),
    ops.domain_style(text, text, text, boolean),
    fediverse_inbox_moved(text, text), fediverse_inbox_found(text, text, text),
    fediverse_moved_inboxes() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ops.domain_block(text, text, boolean),
    ops.domain_unblock(text, text, boolean), ops.domain_style(text, text, text, boolean)
    TO postrider_operator;
GRANT EXECUTE ON FUNCTION fediverse_inbox_moved(text, text),
    fediverse_inbox_found(text, text, text) TO postrider_outboxd;
GRANT SELECT ON fediverse_moved_inboxes TO postrider_outboxd;
GRANT SELECT, DELETE ON fediverse_moved_inboxes TO postrider_janitord;
GRANT EXECUTE ON FUNCTION fediverse_moved_inboxes() TO postrider_app;
GRANT SELECT ON ops.moved_inboxes TO postrider_operator, postrider_monitor;
