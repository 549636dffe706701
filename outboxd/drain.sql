-- Draining the outbox: what the holder of a peer's lease says to PostgreSQL.

-- name: drain_remove :none
-- $1 peer, $2 token, $3 ids
WITH held AS MATERIALIZED (
    SELECT id FROM federation_peers
     WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()
       FOR NO KEY UPDATE)
DELETE FROM federation_outbox
 WHERE peer_id = $1 AND id = ANY ($3::bigint[]) AND EXISTS (SELECT FROM held)
   AND id BETWEEN (SELECT min(i) FROM unnest($3::bigint[]) i)
              AND (SELECT max(i) FROM unnest($3::bigint[]) i);

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
-- $1 peer, $2 token, $3 how long nobody shall look, $4 where the outbox was said to
-- begin, $5 and does, $6 what was presented
WITH freed AS (
    UPDATE federation_peers
       SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity',
           empty_through = CASE empty_through WHEN $4 THEN $5 ELSE empty_through END,
           next_attempt_at = greatest(next_attempt_at, now() + $3)
     WHERE id = $1 AND lease_token = $2::uuid
    RETURNING id)
INSERT INTO outbox_presented (peer_id, through)
SELECT id, $6 FROM freed
    ON CONFLICT (peer_id) DO UPDATE SET through = excluded.through;
