-- What an operator looks at and does. Views are wide enough for a hundred
-- columns, worst first, ages as intervals. All of them stay quick with a
-- million entries waiting: the outbox is counted from its indexes only.

CREATE SCHEMA ops;
COMMENT ON SCHEMA ops IS 'For people: views to look at, functions to act with.';

-- Peers that have entries, by hopping through the primary key; an entry may
-- outlive its peer.
CREATE VIEW ops.outbox_by_peer AS
WITH RECURSIVE hop AS (
    (SELECT peer_id FROM public.federation_outbox ORDER BY peer_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.peer_id FROM public.federation_outbox o
             WHERE o.peer_id > hop.peer_id ORDER BY o.peer_id LIMIT 1)
      FROM hop WHERE hop.peer_id IS NOT NULL)
SELECT hop.peer_id, first.id AS oldest_id, first.created_at AS oldest_at,
       first.event_type AS oldest_type
  FROM hop
 CROSS JOIN LATERAL (
    SELECT o.id, o.created_at, o.event_type FROM public.federation_outbox o
     WHERE o.peer_id = hop.peer_id ORDER BY o.id LIMIT 1) AS first
 WHERE hop.peer_id IS NOT NULL;

-- Exact up to a hundred thousand, beyond that what statistics know.
CREATE FUNCTION ops.outbox_count() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    bound constant bigint := 100000;
    counted constant bigint := (SELECT count(*) FROM (
        SELECT FROM federation_outbox ORDER BY peer_id, id LIMIT bound + 1) AS upto);
BEGIN
    IF counted <= bound THEN
        RETURN counted;
    END IF;
    RETURN greatest(counted, pg_stat_get_live_tuples('public.federation_outbox'::regclass));
END $$;

CREATE VIEW ops.queue AS
SELECT * FROM (
    SELECT 'outbox' AS queue,
           ops.outbox_count() - aside.entries AS waiting,
           (SELECT count(*) FROM public.federation_peers WHERE lease_until > now()) AS leased,
           aside.entries AS set_aside,
           (SELECT count(*) FROM public.dead_letters WHERE queue = 'outbox') AS dead,
           now() - (SELECT min(oldest_at) FROM ops.outbox_by_peer) AS oldest,
           (SELECT count(*) FROM public.federation_peers WHERE paused_until > now()) AS paused
      FROM (SELECT count(*) AS entries FROM public.federation_outbox
             WHERE retry_at IS NOT NULL) AS aside
    UNION ALL
    SELECT 'fediverse',
           count(*) FILTER (WHERE status = 'pending' AND coalesce(next_retry_at, now()) <= now()),
           0,
           count(*) FILTER (WHERE status = 'pending' AND next_retry_at > now()),
           count(*) FILTER (WHERE status IN ('failed', 'dead')),
           now() - min(created_at) FILTER (WHERE status = 'pending'),
           0
      FROM public.fediverse_outbound_queue
    UNION ALL
    SELECT 'files',
           count(*) FILTER (WHERE status = 'pending' AND lease_until <= now() AND next_retry_at <= now()),
           count(*) FILTER (WHERE status = 'pending' AND lease_until > now()),
           count(*) FILTER (WHERE status = 'pending' AND lease_until <= now() AND next_retry_at > now()),
           count(*) FILTER (WHERE status IN ('failed', 'rejected')),
           now() - min(created_at) FILTER (WHERE status = 'pending'),
           0
      FROM public.federation_file_queue
    UNION ALL
    SELECT 'requests',
           count(*) FILTER (WHERE claimed_at IS NULL AND deadline > now()),
           count(*) FILTER (WHERE claimed_at IS NOT NULL AND deadline > now()),
           0,
           count(*) FILTER (WHERE deadline <= now()),
           now() - min(created_at) FILTER (WHERE deadline > now()),
           0
      FROM public.s2s_requests
     WHERE answered_at IS NULL) AS queues
 ORDER BY oldest DESC NULLS LAST, queue;
COMMENT ON VIEW ops.queue IS
    'What waits; above 100000 about so many. Of the outbox, leased and paused count peers; dead are in ops.dead_letters.';

-- Hosts of people who share a conversation with somebody of ours although we
-- have no peer there: nothing can be sent to them.
CREATE VIEW ops.hosts_without_peer AS
WITH RECURSIVE hop AS (
    (SELECT home_instance FROM public.users
      WHERE home_instance IS NOT NULL AND NOT is_deleted
      ORDER BY home_instance LIMIT 1)
    UNION ALL
    SELECT (SELECT u.home_instance FROM public.users u
             WHERE u.home_instance > hop.home_instance AND NOT u.is_deleted
             ORDER BY u.home_instance LIMIT 1)
      FROM hop WHERE hop.home_instance IS NOT NULL)
SELECT hop.home_instance AS host
  FROM hop
 WHERE hop.home_instance IS NOT NULL
   AND NOT EXISTS (SELECT FROM public.federation_peers p WHERE p.host = hop.home_instance)
   AND EXISTS (
    SELECT FROM public.users u
      JOIN public.dm_members theirs ON theirs.user_id = u.id
      JOIN public.dm_members ours ON ours.dm_channel_id = theirs.dm_channel_id
      JOIN public.users native ON native.id = ours.user_id
     WHERE u.home_instance = hop.home_instance AND NOT u.is_deleted
       AND native.home_instance IS NULL AND NOT native.is_deleted);

-- The state of a peer in one word of ours, with what it means.
CREATE FUNCTION ops.peer_state(p public.federation_peers) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p.status = 'revoked' THEN 'revoked'
        WHEN p.status = 'awaiting_approval' THEN 'awaiting approval'
        WHEN p.paused_until > now() THEN 'paused'
        WHEN p.status = 'pending' THEN 'pending'
        WHEN p.auth_failures > 0 THEN 'refuses our signature'
        WHEN p.status = 'unreachable' THEN 'unreachable'
        WHEN p.transport_failures > 0 THEN 'failing'
        ELSE 'active' END
$$;

CREATE VIEW ops.peers AS
SELECT peer, state, since, waiting, leased_by, oldest, next_attempt, attempts, last_ok_out,
       last_ok_in, last_code, last_error, paused_until, paused_by, reason, meaning
  FROM (
    SELECT p.origin AS peer,
           state.word AS state,
           now() - CASE
               WHEN state.word IN ('pending', 'awaiting approval') THEN coalesce(p.initiated_at, p.created_at)
               WHEN state.word IN ('refuses our signature', 'unreachable', 'failing')
                   THEN coalesce(p.last_accepted_at, p.created_at)
               ELSE p.created_at END AS since,
           (SELECT count(*) FROM (SELECT FROM public.federation_outbox o
                WHERE o.peer_id = p.id LIMIT 1000) AS upto) AS waiting,
           CASE WHEN p.lease_until > now() THEN p.lease_worker END AS leased_by,
           now() - oldest.oldest_at AS oldest,
           CASE WHEN p.next_attempt_at > now() THEN p.next_attempt_at - now() END AS next_attempt,
           p.transport_failures + p.auth_failures AS attempts,
           now() - p.last_accepted_at AS last_ok_out,
           now() - p.last_inbound_at AS last_ok_in,
           p.last_code,
           p.last_error,
           CASE WHEN p.paused_until > now() THEN p.paused_until END AS paused_until,
           CASE WHEN p.paused_until > now() THEN p.paused_by END AS paused_by,
           CASE WHEN p.paused_until > now() THEN p.paused_reason END AS reason,
           CASE state.word
               WHEN 'revoked' THEN 'we trust it no longer; it gets 403'
               WHEN 'awaiting approval' THEN format('decide: ops.peer_approve(%L) or ops.peer_deny(%L)', p.origin, p.origin)
               WHEN 'paused' THEN 'we send it nothing for now'
               WHEN 'pending' THEN CASE WHEN p.initiated_at IS NULL
                   THEN 'it asked; the handshake has not finished'
                   ELSE 'we asked; the handshake has not finished' END
               WHEN 'refuses our signature' THEN format('refuses our signature since %s: the secrets differ',
                   to_char(coalesce(p.last_accepted_at, p.created_at), 'YYYY-MM-DD HH24:MI'))
               WHEN 'unreachable' THEN 'does not answer; entries are kept'
               WHEN 'failing' THEN 'did not answer the last time'
               ELSE 'well' END AS meaning,
           array_position(ARRAY['refuses our signature', 'unreachable', 'failing', 'no peer',
               'awaiting approval', 'pending', 'paused', 'active', 'revoked'], state.word) AS rank
      FROM public.federation_peers p
     CROSS JOIN LATERAL (SELECT ops.peer_state(p) AS word) AS state
      LEFT JOIN ops.outbox_by_peer oldest ON oldest.peer_id = p.id
    UNION ALL
    SELECT h.host, 'no peer', NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           'people there share conversations with ours, but we are not peered', 4
      FROM ops.hosts_without_peer h) AS peers
 ORDER BY rank, oldest DESC NULLS LAST, peer;
COMMENT ON VIEW ops.peers IS 'Every node we talk to or ought to, worst first; waiting stops counting at 1000.';

CREATE VIEW ops.stuck AS
SELECT * FROM (
    -- Set aside after a refusal for now.
    SELECT 'outbox' AS queue, coalesce(p.origin, o.peer_id::text) AS peer, o.id::text AS entry,
           o.event_type AS type, now() - o.created_at AS age, o.refusals AS attempts,
           p.last_code, o.reason AS last_error,
           'set aside: the peer refused it for now' AS why_stuck,
           format('wait: tried again in %s', date_trunc('second', greatest(o.retry_at - now(), interval '0'))) AS what_to_do
      FROM (SELECT * FROM public.federation_outbox WHERE retry_at IS NOT NULL
             ORDER BY peer_id, id LIMIT 1000) AS o
      LEFT JOIN public.federation_peers p ON p.id = o.peer_id
    UNION ALL
    -- The first entry of a peer to which nothing goes.
    SELECT 'outbox', coalesce(p.origin, o.peer_id::text), o.oldest_id::text, o.oldest_type,
           now() - o.oldest_at, coalesce(p.transport_failures + p.auth_failures, 0),
           p.last_code, p.last_error,
           CASE WHEN p.id IS NULL THEN 'its peer is gone' ELSE 'peer is ' || ops.peer_state(p) END,
           CASE WHEN p.id IS NULL THEN 'nothing: it ends with its time to live'
               ELSE CASE ops.peer_state(p)
               WHEN 'refuses our signature' THEN 'renew the trust: rotate the secret or peer again'
               WHEN 'unreachable' THEN 'ask its operator; it is probed all the time'
               WHEN 'failing' THEN 'wait: tried again by itself'
               WHEN 'awaiting approval' THEN format('ops.peer_approve(%L)', p.origin)
               WHEN 'paused' THEN 'end the pause'
               WHEN 'pending' THEN 'finish the handshake: peer again'
               WHEN 'revoked' THEN 'nothing: it ends with its time to live'
               ELSE 'is outboxd running? see ops.workers' END END
      FROM ops.outbox_by_peer o
      LEFT JOIN public.federation_peers p ON p.id = o.peer_id
     WHERE p.id IS NULL OR ops.peer_state(p) <> 'active'
        OR (o.oldest_at < now() - interval '1 minute' AND p.lease_until <= now())
    UNION ALL
    SELECT 'fediverse', f.target_domain, f.id::text, 'activity', now() - f.created_at, f.attempts,
           NULL, f.last_error, 'the inbox does not take it',
           format('wait: tried again in %s', date_trunc('second', greatest(f.next_retry_at - now(), interval '0')))
      FROM (SELECT * FROM public.fediverse_outbound_queue
             WHERE status = 'pending' AND next_retry_at IS NOT NULL AND attempts > 0
             ORDER BY next_retry_at LIMIT 1000) AS f
    UNION ALL
    SELECT 'files', q.peer_origin, q.id::text, q.mimetype, now() - q.created_at, q.attempts,
           NULL, q.rejection_reason, 'the file did not come',
           format('wait: tried again in %s', date_trunc('second', greatest(q.next_retry_at - now(), interval '0')))
      FROM (SELECT * FROM public.federation_file_queue
             WHERE status = 'pending' AND attempts > 0
             ORDER BY peer_origin, id LIMIT 1000) AS q) AS stuck
 ORDER BY age DESC;
COMMENT ON VIEW ops.stuck IS 'What does not move, why, and what can be done.';

CREATE VIEW ops.dead_letters AS
SELECT id AS entry, queue, peer, event_type AS type, now() - died_at AS died, why,
       peer_answer, refusals AS attempts
  FROM public.dead_letters
 ORDER BY died_at DESC;
COMMENT ON VIEW ops.dead_letters IS 'What could not be delivered, the latest first.';

CREATE VIEW ops.workers AS
SELECT w.daemon, w.instance, w.host, w.pid, w.version, w.schema,
       now() - w.started_at AS since, now() - w.last_seen_at AS last_seen,
       EXISTS (SELECT FROM pg_locks l
                WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND (l.classid::bigint << 32 | l.objid::bigint) = w.id) AS alive,
       (SELECT count(*) FROM public.federation_peers p
         WHERE p.lease_worker = w.id AND p.lease_until > now()) AS leases
  FROM public.workers w
 ORDER BY alive, last_seen DESC, daemon, instance;
COMMENT ON VIEW ops.workers IS 'Daemons and whether they live.';

CREATE VIEW ops.audit AS
SELECT at, who, action, target, reason, rows FROM public.audit ORDER BY id DESC;

-- ---- acting ----
-- The caller is session_user, which a definer's rights do not change.

CREATE FUNCTION ops.origin_of(typed text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    origin constant text := lower(rtrim(btrim(typed), '/'));
BEGIN
    IF origin IS NULL OR origin !~ '^https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$' THEN
        RAISE EXCEPTION 'an origin looks like https://chat.example.org'
            USING ERRCODE = 'PT400';
    END IF;
    RETURN origin;
END $$;

CREATE FUNCTION ops.audit_write(what text, about text, because text, many bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO public.audit (action, target, reason, rows) VALUES (what, about, because, many)
$$;

-- Beforehand: this origin may peer although the policy asks for approval.
CREATE FUNCTION ops.peer_allow(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_allow.origin);
    many bigint;
    known text;
BEGIN
    INSERT INTO federation_allowed_origins AS a (origin) VALUES (wanted)
        ON CONFLICT ON CONSTRAINT federation_allowed_origins_pkey DO NOTHING;
    GET DIAGNOSTICS many = ROW_COUNT;
    PERFORM ops.audit_write('peer_allow', wanted, peer_allow.reason, many);
    SELECT ops.peer_state(p) INTO known FROM federation_peers p WHERE p.origin = wanted;
    RETURN QUERY SELECT wanted, coalesce(known, 'no peer'), CASE
        WHEN known = 'awaiting approval' THEN 'allowed; what waits already still needs ops.peer_approve'
        WHEN many = 0 THEN 'was allowed already'
        ELSE 'allowed: it may peer without asking' END;
END $$;

CREATE FUNCTION ops.peer_approve(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_approve.origin);
    found_id bigint;
    request bigint;
BEGIN
    UPDATE federation_peers p SET status = 'pending'
     WHERE p.origin = wanted AND p.status = 'awaiting_approval'
    RETURNING p.id INTO found_id;
    IF found_id IS NULL THEN
        RAISE EXCEPTION '% is not waiting for approval', wanted USING ERRCODE = 'PT404';
    END IF;
    INSERT INTO s2s_requests AS r (kind, peer_id, origin, deadline)
    VALUES ('counter', found_id, wanted, now() + interval '30 seconds')
    RETURNING r.id INTO request;
    PERFORM pg_notify('postrider_request', request::text);
    PERFORM ops.audit_write('peer_approve', wanted, peer_approve.reason, 1);
    RETURN QUERY SELECT wanted, 'pending',
        'approved: outboxd completes the handshake now; look at ops.peers';
END $$;

-- The row stays, so that it is refused when it asks again.
CREATE FUNCTION ops.peer_deny(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_deny.origin);
    many bigint;
BEGIN
    UPDATE federation_peers p
       SET status = 'revoked', hmac_secret = NULL, pending_hmac_secret = NULL,
           offered_secret = NULL, offered_at = NULL, approval_token = NULL
     WHERE p.origin = wanted AND p.status = 'awaiting_approval';
    GET DIAGNOSTICS many = ROW_COUNT;
    IF many = 0 THEN
        RAISE EXCEPTION '% is not waiting for approval', wanted USING ERRCODE = 'PT404';
    END IF;
    PERFORM ops.audit_write('peer_deny', wanted, peer_deny.reason, many);
    RETURN QUERY SELECT wanted, 'revoked', 'denied: it gets 403 when it asks again';
END $$;

CREATE FUNCTION ops.make_admin(username text, reason text DEFAULT NULL)
RETURNS TABLE (person text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    was boolean;
BEGIN
    SELECT u.is_admin INTO was FROM users u
     WHERE u.username = make_admin.username AND u.home_instance IS NULL AND NOT u.is_deleted
       FOR NO KEY UPDATE;
    IF was IS NULL THEN
        RAISE EXCEPTION 'nobody of this node is called %', make_admin.username
            USING ERRCODE = 'PT404';
    END IF;
    UPDATE users u SET is_admin = true WHERE u.username = make_admin.username AND NOT u.is_admin;
    PERFORM ops.audit_write('make_admin', make_admin.username, make_admin.reason, (NOT was)::int);
    RETURN QUERY SELECT make_admin.username, 'admin',
        CASE WHEN was THEN 'was an administrator already' ELSE 'is an administrator now' END;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM PUBLIC;
