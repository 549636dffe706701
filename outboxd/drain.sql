-- Draining the outbox: what the holder of a peer's lease says to PostgreSQL.

-- name: drain_claim :many
-- $1 room, $2 how long, $3 worker
-- A CTE: a subquery under IN may run again and lock more than was asked.
-- NO KEY: nobody who only refers to the peer has to wait for us. LIMIT: an EXISTS
-- becomes a join that reads the whole outbox.
WITH due AS MATERIALIZED (
    SELECT p.id FROM federation_peers p
     WHERE p.next_attempt_at <= now() AND p.lease_until < now()
       AND coalesce(p.paused_until, '-infinity') <= now()
       AND (p.status IN ('active', 'unreachable')
            OR p.status = 'pending' AND p.hmac_secret IS NOT NULL
               AND p.initiated_at IS NOT NULL
               AND coalesce(p.attempt_until, '-infinity') < now())
       AND (SELECT true FROM federation_outbox o WHERE o.peer_id = p.id LIMIT 1)
     ORDER BY p.next_attempt_at, p.id
     LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE federation_peers p
   SET lease_worker = $3, lease_token = gen_random_uuid(), lease_until = now() + $2
  FROM due WHERE p.id = due.id
RETURNING p.id AS peer, p.origin, p.lease_token::text AS token, p.status,
          CASE WHEN p.secret_rotation_at IS NULL THEN p.hmac_secret
               ELSE p.pending_hmac_secret END AS hmac_secret, p.presented_through,
          p.transport_failures, p.auth_failures, p.retry_batch_limit, p.remote_max_upload_size,
          (extract(epoch FROM now() - p.last_accepted_at) * 1000)::bigint AS accepted_ms;

-- name: drain_fetch :many
-- $1 peer, $2 token, $3 cursor, $4 window, $5 what is settled, $6 of that: what is
-- above the cursor (a list that is searched for each entry that is read), $7 floor,
-- $8 snapshot of the last reading or NULL, $9 and $10 what is settled besides: every
-- id from one to the other
-- Acknowledges and reads on, in one statement and only for the holder. Without
-- the lease there is no row; with it first one that tells of the reading and has
-- no id. The cursor is a hint, entries commit late: late says that one has
-- appeared behind it. ANY, and a range with both bounds: one without a lower
-- bound would read every dead row again.
WITH held AS MATERIALIZED (
    SELECT id FROM federation_peers
     WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()
       FOR NO KEY UPDATE),
gone AS (
    DELETE FROM federation_outbox
     WHERE peer_id = $1 AND id = ANY ($5::bigint[]) AND EXISTS (SELECT FROM held)),
gone_too AS (
    DELETE FROM federation_outbox
     WHERE peer_id = $1 AND id BETWEEN $9 AND $10 AND EXISTS (SELECT FROM held)),
seen AS MATERIALIZED (
    SELECT pg_current_snapshot()::text AS snapshot,
           $8::text IS NOT NULL AND EXISTS (
           SELECT FROM federation_outbox o
            WHERE o.peer_id = $1 AND o.id > $7 AND o.id <= $3
              AND NOT pg_visible_in_snapshot(o.xact, $8::text::pg_snapshot)) AS late)
SELECT seen.snapshot, seen.late, NULL::bigint AS id, NULL::text AS context_type, NULL::text AS context_id,
       NULL::text AS event_type, NULL::text AS entity_id, NULL::text AS payload,
       NULL::integer AS encryption_version, NULL::timestamptz AS created_at,
       NULL::timestamptz AS expires_at, NULL::timestamptz AS retry_at, NULL::integer AS refusals,
       NULL::text AS reason
  FROM held CROSS JOIN seen
 UNION ALL
SELECT NULL, NULL, e.id, e.context_type, e.context_id, e.event_type, e.entity_id, e.payload,
       e.encryption_version, e.created_at, e.expires_at, e.retry_at, e.refusals, e.reason
  FROM held CROSS JOIN LATERAL (
        SELECT * FROM federation_outbox o
         WHERE o.peer_id = $1 AND o.id > $3 AND o.id <> ALL ($6::bigint[])
         ORDER BY o.peer_id, o.id LIMIT $4) e;

-- name: drain_remove :none
-- $1 peer, $2 token, $3 ids
WITH held AS MATERIALIZED (
    SELECT id FROM federation_peers
     WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()
       FOR NO KEY UPDATE)
DELETE FROM federation_outbox
 WHERE peer_id = $1 AND id = ANY ($3::bigint[]) AND EXISTS (SELECT FROM held);

-- name: drain_present :one
-- $1 peer, $2 token, $3 the load's last id, $4 how many ids further if an entry
-- has them, $5 how many further anyhow
-- What leaves, and what will leave soon, counts as presented.
UPDATE federation_peers p
   SET presented_through = greatest(p.presented_through, $3 + $5, least($3 + $4,
        (SELECT max(o.id) FROM federation_outbox o WHERE o.peer_id = $1)))
 WHERE p.id = $1 AND p.lease_token = $2::uuid AND p.lease_until > now()
RETURNING p.presented_through;

-- name: drain_release :none
-- $1 peer, $2 token, $3 how long nobody shall look
UPDATE federation_peers
   SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity',
       next_attempt_at = greatest(next_attempt_at, now() + $3)
 WHERE id = $1 AND lease_token = $2::uuid;
