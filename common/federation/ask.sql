-- name: ask_add :one
INSERT INTO s2s_requests (kind, peer_id, origin, body, ephemeral, deadline)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING id;

-- name: ask_read :opt
SELECT id, kind, peer_id, origin, body, ephemeral, deadline, answered_at,
       outcome, status, answer, error
  FROM s2s_requests WHERE id = $1;

-- name: ask_close :opt
-- What was never claimed was never sent; what was claimed may have arrived.
UPDATE s2s_requests
   SET answered_at = coalesce(answered_at, now()),
       outcome = coalesce(outcome,
           CASE WHEN claimed_at IS NULL THEN 'too_late' ELSE 'unknown' END),
       error = CASE WHEN answered_at IS NULL THEN 'timeout' ELSE error END
 WHERE id = $1
RETURNING id, kind, peer_id, origin, body, ephemeral, deadline, answered_at,
       outcome, status, answer, error;
