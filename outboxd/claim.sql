-- Leasing peers that are due.

-- name: claim_peers :many
-- $1 room, $2 how long, $3 worker, $4 also what is in a peer's outbox at or below
-- empty_through, $5 how many of its first entries to bring along, $6 only these
-- peers, or NULL
-- A row a peer, or one for each of those entries. They are brought only if the
-- peer's row is still what this statement's snapshot saw: else somebody has had
-- the lease meanwhile, and sent what seems to be there.
-- A CTE: a subquery under IN may run again and lock more than was asked.
-- NO KEY: nobody who only refers to the peer has to wait for us. LIMIT 1: an
-- EXISTS becomes a join that reads the whole outbox. OFFSET and LATERAL: who is
-- first in line is probed first, and nobody after there are enough.
WITH due AS MATERIALIZED (
    SELECT d.id, d.version = l.version AS unmoved
      FROM (SELECT id, empty_through, xmin AS version FROM federation_peers
             WHERE id = ANY (CASE WHEN $6::bigint[] IS NULL
                             THEN ARRAY (SELECT id FROM federation_peers
                                          WHERE lease_until < now())
                             ELSE $6 END)
               AND next_attempt_at <= now() AND lease_until < now()
             ORDER BY next_attempt_at, id OFFSET 0) l
     CROSS JOIN LATERAL (
           SELECT p.id, p.xmin AS version FROM federation_peers p
            WHERE p.id = l.id AND p.next_attempt_at <= now() AND p.lease_until < now()
              AND coalesce(p.paused_until, '-infinity') <= now()
              AND (p.status IN ('active', 'unreachable')
                   OR p.status = 'pending' AND p.hmac_secret IS NOT NULL
                      AND p.initiated_at IS NOT NULL
                      AND coalesce(p.attempt_until, '-infinity') < now())
              FOR NO KEY UPDATE SKIP LOCKED) d
     WHERE (SELECT true FROM federation_outbox o
             WHERE o.peer_id = l.id
               AND o.id > CASE WHEN $4 THEN 0 ELSE l.empty_through END LIMIT 1)
     LIMIT $1),
leased AS (
UPDATE federation_peers p
   SET lease_worker = $3, lease_token = gen_random_uuid(), lease_until = now() + $2,
       empty_through = CASE WHEN $4 THEN 0 ELSE p.empty_through END
  FROM due WHERE p.id = due.id
RETURNING p.id AS peer, due.unmoved, p.origin, p.lease_token::text AS token, p.status,
          CASE WHEN p.secret_rotation_at IS NULL THEN p.hmac_secret
               ELSE p.pending_hmac_secret END AS hmac_secret,
          p.presented_through, p.empty_through,
          p.transport_failures, p.auth_failures, p.retry_batch_limit, p.remote_max_upload_size,
          (extract(epoch FROM now() - p.last_accepted_at) * 1000)::bigint AS accepted_ms,
          p.limit_per_minute,
          (extract(epoch FROM now() - p.limited_at) * 1000)::bigint AS limited_ms),
exact AS (
    DELETE FROM outbox_presented e USING due WHERE e.peer_id = due.id
    RETURNING e.peer_id, e.through)
SELECT leased.*, coalesce(exact.through, leased.presented_through) AS presented,
       CASE WHEN leased.unmoved THEN pg_current_snapshot()::text END AS snapshot,
       e.id, e.context_type, e.context_id, e.event_type, e.entity_id, e.payload,
       e.encryption_version, e.created_at, e.expires_at, e.retry_at, e.refusals, e.reason
  FROM leased LEFT JOIN exact ON exact.peer_id = leased.peer
  LEFT JOIN LATERAL (
        SELECT * FROM federation_outbox o
         WHERE o.peer_id = leased.peer AND leased.unmoved
           AND o.id > CASE WHEN $4 THEN 0 ELSE leased.empty_through END
         ORDER BY o.peer_id, o.id LIMIT $5) e ON true
 ORDER BY leased.peer, e.id;

-- name: claim_elsewhere :many
-- $1 peers, $2 worker
-- Those of them that somebody else has.
SELECT id FROM federation_peers
 WHERE id = ANY ($1::bigint[]) AND lease_until > now() AND lease_worker <> $2;
