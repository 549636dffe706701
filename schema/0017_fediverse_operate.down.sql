DROP FUNCTION ops.fediverse_discard_dead(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_replay(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_discard(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_retry_now(text, text, boolean);
DROP FUNCTION ops.domain_revive(text, text, boolean);
DROP FUNCTION ops.domain_resume(text, text, boolean);
DROP FUNCTION ops.domain_pause(text, text, interval, boolean);
DROP FUNCTION ops.about_activities(text, interval);
DROP FUNCTION ops.need_activities(text, interval, text, integer);
DROP FUNCTION ops.activity_is(public.fediverse_outbound_queue, text, interval);
DROP FUNCTION ops.domain_named(text);
-- As they were before.
CREATE OR REPLACE VIEW ops.queue AS
SELECT queue, waiting, leased, set_aside, dead, oldest, rate.per_minute,
       CASE WHEN rate.per_minute > 0 THEN make_interval(secs => waiting * 60 / rate.per_minute) END AS drains_in,
       paused
  FROM (
    SELECT 'outbox' AS queue,
           ops.outbox_count() - aside.entries AS waiting,
           (SELECT count(*) FROM public.federation_peers WHERE lease_until > now()) AS leased,
           aside.entries AS set_aside,
           (SELECT count(*) FROM public.dead_letters WHERE queue = 'outbox') AS dead,
           now() - (SELECT min(oldest_at) FROM ops.outbox_by_peer) AS oldest,
           (SELECT count(*) FROM public.federation_peers WHERE paused_until > now()) AS paused
      FROM (SELECT count(*) AS entries FROM (SELECT FROM public.federation_outbox
             WHERE retry_at IS NOT NULL ORDER BY peer_id, id LIMIT 10000) AS upto) AS aside
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
 CROSS JOIN LATERAL (
    SELECT sum((w.rates ->> queue)::double precision)::bigint AS per_minute
      FROM public.workers w WHERE w.last_seen_at > now() - interval '1 minute') AS rate
 ORDER BY oldest DESC NULLS LAST, queue;
COMMENT ON VIEW ops.queue IS
    'What waits; above 10000 about so many, set aside at most 10000. per_minute left lately; drains_in: at that rate, if nothing is added. Of the outbox, leased and paused count peers; dead are in ops.dead_letters.';

CREATE OR REPLACE VIEW ops.workers AS
WITH alive AS MATERIALIZED (
    SELECT l.classid::bigint << 32 | l.objid::bigint AS id
      FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
held AS MATERIALIZED (
    SELECT worker, count(*) AS leases, array_agg(peer ORDER BY peer) AS peers
      FROM (SELECT lease_worker, origin FROM public.federation_peers
             WHERE lease_worker IS NOT NULL AND lease_until > now()
            UNION ALL
            SELECT lease_worker, peer_origin FROM public.federation_file_queue
             WHERE status = 'pending' AND lease_until > now()) AS leases (worker, peer)
     GROUP BY worker),
asked AS MATERIALIZED (
    SELECT worker, count(*) AS questions FROM public.s2s_requests
     WHERE claimed_at IS NOT NULL AND answered_at IS NULL AND deadline > now()
     GROUP BY worker)
SELECT w.daemon, w.instance, w.host, w.pid, w.version, w.schema,
       now() - w.started_at AS since, now() - w.last_seen_at AS last_seen,
       EXISTS (SELECT FROM alive WHERE alive.id = w.id) AS alive,
       coalesce(held.leases, 0) AS leases,
       coalesce(asked.questions, 0) AS in_flight,
       array_to_string(held.peers[1:3], ', ')
           || CASE WHEN held.leases > 3 THEN format(' and %s more', held.leases - 3) ELSE '' END AS holds,
       w.id AS worker
  FROM public.workers w
  LEFT JOIN held ON held.worker = w.id
  LEFT JOIN asked ON asked.worker = w.id
 ORDER BY alive, last_seen DESC, daemon, instance;
COMMENT ON VIEW ops.workers IS
    'Daemons, whether they live, whose peers they hold and how many questions they have on the wire.';

DROP VIEW ops.fediverse_queue, ops.domains;
DROP FUNCTION ops.domain_state(public.fediverse_domains);
DROP FUNCTION ops.fediverse_ended();
DROP FUNCTION ops.fediverse_aside();
DROP FUNCTION ops.fediverse_count();
DROP VIEW ops.fediverse_sample, ops.fediverse_by_domain;
DROP FUNCTION ops.fediverse_sample_percent();
ALTER TABLE fediverse_domains
    DROP COLUMN paused_reason,
    DROP COLUMN paused_by,
    DROP COLUMN paused_until;
