DROP FUNCTION ops.discard_dead(text, text, text, interval, text, integer, boolean);
DROP FUNCTION ops.replay(text, text, text, interval, text, integer, boolean);
DROP VIEW ops.letters_to_replay;
DROP FUNCTION ops.discard(text, text, text, interval, text, integer, boolean);
DROP FUNCTION ops.retry_now(text, text, text, interval, text, boolean);
DROP FUNCTION ops.peers_due(bigint, bigint[]);
DROP FUNCTION ops.peer_resume(text, text, boolean);
DROP FUNCTION ops.peer_pause(text, text, interval, boolean);
DROP FUNCTION ops.about(bigint, text, text, text, interval);
DROP FUNCTION ops.told(text, bigint, bigint, boolean);
DROP FUNCTION ops.letter_is(public.dead_letters, text, text, interval);
DROP FUNCTION ops.entry_is(public.federation_outbox, text, text, interval);
DROP FUNCTION ops.need_choice(text, text, text, interval, integer);
DROP FUNCTION ops.need_why(text);
DROP FUNCTION ops.peer_named(text);

-- As they were.
CREATE OR REPLACE VIEW ops.peers AS
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
DROP VIEW ops.outbox_sample;
DROP FUNCTION ops.sample_percent();

-- Exact up to a hundred thousand, beyond that what statistics know.
CREATE OR REPLACE FUNCTION ops.outbox_count() RETURNS bigint
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

CREATE OR REPLACE VIEW ops.queue AS
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

CREATE OR REPLACE VIEW ops.stuck AS
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

DROP VIEW ops.dead_letters, ops.workers;
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
GRANT SELECT ON ops.dead_letters, ops.workers TO postrider_operator, postrider_monitor;

ALTER TABLE workers RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE nonces RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay);
ALTER TABLE dead_letters RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_threshold, autovacuum_vacuum_insert_scale_factor);
ALTER TABLE fediverse_outbound_queue RESET (autovacuum_vacuum_threshold,
    autovacuum_vacuum_cost_delay);
ALTER TABLE fediverse_outbound_queue SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE federation_file_queue RESET (autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_threshold);
ALTER TABLE dead_letters DROP COLUMN encryption_version;
