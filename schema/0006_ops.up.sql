-- What an operator looks at; ops.queue and ops.workers come last, once all queues
-- are there. Views are wide enough for a hundred columns, worst first, ages as
-- intervals. All of them stay quick with a million entries waiting: the outbox is
-- counted from its indexes only.

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

-- A million rows that no vacuum has seen are read one by one: a count of many
-- takes a second then. A thousand pages of the outbox are looked at instead;
-- while it has no more than that, they are all of it.
CREATE FUNCTION ops.sample_percent() RETURNS real
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT least(100, 100 * 1000.0 / greatest(1, pg_relation_size('public.federation_outbox')
               / current_setting('block_size')::bigint))::real
$$;

CREATE VIEW ops.outbox_sample AS
SELECT peer_id, (count(*) * 100 / ops.sample_percent())::bigint AS entries
  FROM public.federation_outbox TABLESAMPLE SYSTEM (ops.sample_percent())
 GROUP BY peer_id;

-- Exact up to ten thousand, beyond that what statistics know.
CREATE FUNCTION ops.outbox_count() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    bound constant bigint := 10000;
    counted constant bigint := (SELECT count(*) FROM (
        SELECT FROM federation_outbox ORDER BY peer_id, id LIMIT bound + 1) AS upto);
BEGIN
    IF counted <= bound THEN
        RETURN counted;
    END IF;
    RETURN greatest(counted, pg_stat_get_live_tuples('public.federation_outbox'::regclass));
END $$;

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
        WHEN p.last_code = 429 AND p.next_attempt_at > now() THEN 'asks us to wait'
        ELSE 'active' END
$$;

CREATE VIEW ops.peers AS
SELECT peer, state, since, waiting, leased_by, oldest, next_attempt, attempts, last_ok_out,
       last_ok_in, last_code, last_error, latency_ms, limits, paused_until, paused_by, reason,
       last_probe, probes, meaning
  FROM (
    SELECT p.origin AS peer,
           state.word AS state,
           now() - CASE
               WHEN state.word IN ('pending', 'awaiting approval') THEN coalesce(p.initiated_at, p.created_at)
               WHEN state.word IN ('refuses our signature', 'unreachable', 'failing')
                   THEN coalesce(p.last_accepted_at, p.created_at)
               ELSE p.created_at END AS since,
           CASE WHEN upto.entries < 20 THEN upto.entries
               ELSE greatest(upto.entries, sample.entries) END AS waiting,
           CASE WHEN p.lease_until > now() THEN p.lease_worker END AS leased_by,
           now() - oldest.oldest_at AS oldest,
           CASE WHEN p.next_attempt_at > now() THEN p.next_attempt_at - now() END AS next_attempt,
           p.transport_failures + p.auth_failures AS attempts,
           now() - p.last_accepted_at AS last_ok_out,
           now() - p.last_inbound_at AS last_ok_in,
           p.last_code,
           p.last_error,
           p.latency_ms,
           nullif(concat_ws(', ',
               CASE WHEN p.limited_at > now() - interval '90 minutes'
                   THEN format('%s batches a minute', p.limit_per_minute) END,
               'batches of ' || p.retry_batch_limit,
               'files up to ' || pg_size_pretty(p.remote_max_upload_size)), '') AS limits,
           CASE WHEN p.paused_until > now() THEN p.paused_until END AS paused_until,
           CASE WHEN p.paused_until > now() THEN p.paused_by END AS paused_by,
           CASE WHEN p.paused_until > now() THEN p.paused_reason END AS reason,
           now() - p.last_probe_at AS last_probe,
           p.probes,
           CASE state.word
               WHEN 'revoked' THEN 'we trust it no longer; it gets 403'
               WHEN 'awaiting approval' THEN format('decide: ops.peer_approve(%L) or ops.peer_deny(%L)', p.origin, p.origin)
               WHEN 'paused' THEN format('we send it nothing for now; to end that: ops.peer_resume(%L)', p.origin)
               WHEN 'pending' THEN CASE WHEN p.initiated_at IS NULL
                   THEN 'it asked; the handshake has not finished'
                   ELSE 'we asked; the handshake has not finished' END
               WHEN 'refuses our signature' THEN format('refuses our signature since %s: the secrets or the clocks differ',
                   to_char(coalesce(p.last_accepted_at, p.created_at), 'YYYY-MM-DD HH24:MI'))
               WHEN 'unreachable' THEN 'does not answer; entries are kept'
               WHEN 'failing' THEN 'did not answer the last time'
               WHEN 'asks us to wait' THEN 'it answered 429; from then on we stay below what it took before'
               ELSE CASE WHEN p.latency_ms >= 5000
                   THEN format('well, but it takes %s s to answer', p.latency_ms / 1000)
                   ELSE 'well' END END AS meaning,
           array_position(ARRAY['refuses our signature', 'unreachable', 'failing', 'asks us to wait', 'no peer',
               'awaiting approval', 'pending', 'paused', 'active', 'revoked'], state.word) AS rank
      FROM public.federation_peers p
     CROSS JOIN LATERAL (SELECT ops.peer_state(p) AS word) AS state
     CROSS JOIN LATERAL (
        SELECT count(*) AS entries FROM (SELECT FROM public.federation_outbox o
         WHERE o.peer_id = p.id ORDER BY o.peer_id, o.id LIMIT 20) AS first) AS upto
      LEFT JOIN ops.outbox_by_peer oldest ON oldest.peer_id = p.id
      LEFT JOIN ops.outbox_sample sample ON sample.peer_id = p.id
    UNION ALL
    SELECT h.host, 'no peer', NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           'people there share conversations with ours, but we are not peered', 5
      FROM ops.hosts_without_peer h) AS peers
 ORDER BY rank, oldest DESC NULLS LAST, peer;
COMMENT ON VIEW ops.peers IS
    'Every node we talk to or ought to, worst first; of 20 and more about so many wait once the outbox is large.';

CREATE VIEW ops.stuck AS
SELECT * FROM (
    -- Set aside after a refusal for now.
    SELECT 'outbox' AS queue, coalesce(p.origin, o.peer_id::text) AS peer, o.id::text AS entry,
           o.event_type AS type, now() - o.created_at AS age, o.refusals AS attempts,
           p.last_code, o.reason AS last_error,
           'set aside: the peer refused it for now' AS why_stuck,
           format('wait: tried again in %s; or ops.retry_now(%L)',
               date_trunc('second', greatest(o.retry_at - now(), interval '0')), p.origin) AS what_to_do
      FROM (SELECT * FROM public.federation_outbox WHERE retry_at IS NOT NULL
             ORDER BY peer_id, id LIMIT 1000) AS o
      LEFT JOIN public.federation_peers p ON p.id = o.peer_id
    UNION ALL
    -- The first entry of a peer to which nothing goes.
    SELECT 'outbox', coalesce(p.origin, o.peer_id::text), o.oldest_id::text, o.oldest_type,
           now() - o.oldest_at, coalesce(p.transport_failures + p.auth_failures, 0),
           p.last_code, p.last_error,
           CASE WHEN p.id IS NULL THEN 'its peer is gone'
               WHEN ops.peer_state(p) IN ('refuses our signature', 'asks us to wait')
                   THEN 'peer ' || ops.peer_state(p)
               ELSE 'peer is ' || ops.peer_state(p) END,
           CASE WHEN p.id IS NULL
               THEN format('wait: it ends with its time to live; or ops.discard(%L, why => ...)', o.peer_id::text)
               ELSE CASE ops.peer_state(p)
               WHEN 'refuses our signature' THEN 'renew the trust: rotate the secret or peer again'
               WHEN 'unreachable' THEN format('ask its operator; it is probed all the time; or ops.retry_now(%L)', p.origin)
               WHEN 'failing' THEN format('wait: tried again by itself; or ops.retry_now(%L)', p.origin)
               WHEN 'asks us to wait' THEN format('wait: it is tried again in %s',
                   date_trunc('second', p.next_attempt_at - now()))
               WHEN 'awaiting approval' THEN format('ops.peer_approve(%L)', p.origin)
               WHEN 'paused' THEN format('ops.peer_resume(%L)', p.origin)
               WHEN 'pending' THEN 'finish the handshake: peer again'
               WHEN 'revoked' THEN format('wait: it ends with its time to live; or ops.discard(%L, why => ...)', p.origin)
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
SELECT id AS entry, queue, peer, event_type AS type, died_at, why, peer_answer, refusals
  FROM public.dead_letters
 ORDER BY died_at DESC;
COMMENT ON VIEW ops.dead_letters IS
    'What could not be delivered, the latest first; ops.replay and ops.discard_dead act on it.';

CREATE VIEW ops.audit AS
SELECT at, who, action, target, reason, rows FROM public.audit ORDER BY id DESC;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM PUBLIC;
