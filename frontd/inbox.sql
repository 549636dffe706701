-- name: inbox_blocked :one
SELECT fediverse_is_blocked($1) AS blocked;

-- name: inbox_asking :one
SELECT count(*) AS many FROM s2s_requests
 WHERE kind = 'actor' AND answered_at IS NULL AND deadline > now();

-- name: inbox_asked :opt
-- A question for the same document that will be answered in time.
SELECT id, kind, peer_id, origin, body, ephemeral, deadline, answered_at,
       outcome, status, answer, error
  FROM s2s_requests
 WHERE kind = 'actor' AND origin = $1 AND body = $2 AND answered_at IS NULL
   AND deadline > now() + interval '2 seconds'
 LIMIT 1;
