-- Peers that do not answer: asking whether they live.

-- name: probe_claim :many
-- $1 room
-- 30 s, 1, 5, then every 15 minutes, up to a tenth more; only an accepted batch
-- begins the row anew, so that a peer which answers here and refuses batches is
-- tried every 15 minutes at last. The claim is the time stamp: a second leader
-- finds nothing due. Who asked for a pause gets it.
WITH due AS MATERIALIZED (
    SELECT p.id, CASE WHEN p.last_accepted_at > p.last_probe_at THEN 0 ELSE p.probes END AS tried
      FROM federation_peers p
     WHERE (p.status = 'unreachable' OR p.status = 'active' AND p.transport_failures > 0)
       AND coalesce(p.paused_until, '-infinity') <= now()
       AND p.next_attempt_at > now() AND p.lease_until <= now()
       AND p.last_code IS DISTINCT FROM 429
       AND coalesce(greatest(p.last_failure_at, p.last_probe_at), '-infinity')
           + CASE CASE WHEN p.last_accepted_at > p.last_probe_at THEN 0 ELSE p.probes END
                 WHEN 0 THEN interval '30 seconds' WHEN 1 THEN interval '1 minute'
                 WHEN 2 THEN interval '5 minutes' ELSE interval '15 minutes' END
           * (1 + (hashint8(p.id + p.probes) & 1023) / 10240.0) <= now()
       AND EXISTS (SELECT FROM federation_outbox o WHERE o.peer_id = p.id)
     ORDER BY p.last_probe_at NULLS FIRST, p.id
     LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE federation_peers p
   SET last_probe_at = now(), probes = due.tried + 1
  FROM due WHERE p.id = due.id
RETURNING p.id AS peer, p.origin, p.probes;

-- name: probe_answered :opt
-- $1 peer, $2 within how long
-- A sign of life brings one trial batch forward and forgives nothing.
WITH trial AS (
    UPDATE federation_peers
       SET next_attempt_at = least(next_attempt_at, now() + random() * $2),
           last_seen_at = now()
     WHERE id = $1 AND status IN ('active', 'unreachable')
       AND coalesce(paused_until, '-infinity') <= now()
       AND last_code IS DISTINCT FROM 429
    RETURNING id)
SELECT id AS peer, pg_notify('postrider_outbox', id::text) FROM trial;

-- name: probe_ask :many
-- $1 an empty relay, $2 how long it may take, $3 how often, $4 how many
-- Unreachable, and nothing waits: there is no batch to try. outboxd signs and
-- sends an empty one; the trigger signals.
WITH due AS MATERIALIZED (
    SELECT p.id FROM federation_peers p
     WHERE p.status = 'unreachable'
       AND coalesce(p.paused_until, '-infinity') <= now()
       AND coalesce(greatest(p.last_failure_at, p.last_probe_at), '-infinity')
           + $3 * (1 + (hashint8(p.id + p.probes) & 1023) / 10240.0) <= now()
       AND NOT EXISTS (SELECT FROM federation_outbox o WHERE o.peer_id = p.id)
     ORDER BY p.last_probe_at NULLS FIRST, p.id
     LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED),
claimed AS (
    UPDATE federation_peers p SET last_probe_at = now(), probes = p.probes + 1
      FROM due WHERE p.id = due.id
    RETURNING p.id, p.origin)
INSERT INTO s2s_requests (kind, peer_id, origin, body, deadline)
SELECT 'relay', c.id, c.origin, $1, now() + $2 FROM claimed c
RETURNING peer_id AS peer, origin;

-- name: probe_believe :many
-- $1 the empty relay that was asked
-- It took what we signed: the relay path works. An answer older than the last
-- failure proves nothing.
WITH proof AS MATERIALIZED (
    SELECT r.peer_id, max(r.answered_at) AS at FROM s2s_requests r
     WHERE r.created_at > now() - interval '5 minutes'
       AND r.kind = 'relay' AND r.body = $1 AND r.outcome = 'answered'
       AND r.status = 200 AND r.answer ~ '"accepted"\s*:\s*\['
     GROUP BY r.peer_id)
UPDATE federation_peers p
   SET status = 'active', transport_failures = 0, auth_failures = 0, probes = 0,
       last_error = NULL, last_code = 200, last_seen_at = now(), last_accepted_at = now(),
       next_attempt_at = now()
  FROM proof
 WHERE p.id = proof.peer_id AND p.status = 'unreachable' AND p.lease_until <= now()
   AND coalesce(p.last_failure_at, '-infinity') < proof.at
RETURNING p.id AS peer, p.origin;
