-- Rotation of secrets; the grace is ROTATION_GRACE_MS of peer.h.

-- name: rotation_attempt :none
-- $1 peer, $2 how long an attempt runs
-- What was sent before may be taken as long as its time stamp can pass.
UPDATE federation_peers
   SET rotation_unsure_until = CASE WHEN rotation_by = 'us'
           THEN rotation_attempt_until + interval '30 minutes' END,
       rotation_attempt_until = now() + $2
 WHERE id = $1;

-- name: rotation_due :many
-- $1 room, $2 how long an attempt runs
-- Active peers only. By age: an attempt that came to nothing is not repeated
-- within the hour. Unknown outcomes: after 30 seconds, and then when as much
-- time has passed again, 40 minutes at most, so that earlier attempts are over.
WITH due AS MATERIALIZED (
    SELECT p.id FROM federation_peers p
     WHERE p.status = 'active'
       AND coalesce(p.paused_until, '-infinity') <= now()
       AND coalesce(p.rotation_attempt_until, '-infinity') <= now()
       AND CASE
           WHEN p.rotation_by = 'us' AND p.secret_rotation_at IS NULL THEN
               p.rotation_attempt_until + least(interval '40 minutes', greatest(
                   interval '30 seconds', p.rotation_attempt_until - p.rotation_began_at)) <= now()
           WHEN p.pending_hmac_secret IS NULL THEN
               coalesce(p.secret_rotated_at, p.created_at)
                   + make_interval(days => p.auto_rotate_interval_days) <= now()
               AND coalesce(p.rotation_attempt_until, '-infinity') <= now() - interval '1 hour'
           ELSE false END
     ORDER BY p.rotation_attempt_until NULLS FIRST, p.id
     LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED),
claimed AS (
    UPDATE federation_peers p
       SET rotation_unsure_until = CASE WHEN p.rotation_by = 'us'
               THEN p.rotation_attempt_until + interval '30 minutes' END,
           rotation_attempt_until = now() + $2
      FROM due WHERE p.id = due.id
    RETURNING p.id, p.origin)
INSERT INTO s2s_requests (kind, peer_id, origin, deadline)
SELECT 'rotate', c.id, c.origin, now() + $2 FROM claimed c
RETURNING peer_id AS peer, origin;

-- name: rotation_tidy :many
-- $1 peer or NULL for all, $2 the grace
UPDATE federation_peers
   SET hmac_secret = pending_hmac_secret, pending_hmac_secret = NULL,
       secret_rotated_at = secret_rotation_at + $2, secret_rotation_at = NULL,
       rotation_by = NULL, rotation_began_at = NULL, rotation_attempt_until = NULL,
       rotation_unsure_until = NULL, rotation_error = NULL
 WHERE secret_rotation_at <= now() - $2 AND ($1::bigint IS NULL OR id = $1)
RETURNING id AS peer, origin;

-- name: rotation_store :none
-- $1 peer, $2 the new secret
UPDATE federation_peers
   SET pending_hmac_secret = $2, rotation_by = 'us', rotation_began_at = now(),
       rotation_unsure_until = NULL, rotation_error = NULL
 WHERE id = $1;

-- name: rotation_take :none
-- $1 peer, $2 the new secret
UPDATE federation_peers
   SET pending_hmac_secret = $2, rotation_by = 'peer', rotation_began_at = now(),
       secret_rotation_at = now(), rotation_attempt_until = NULL,
       rotation_unsure_until = NULL, rotation_error = NULL
 WHERE id = $1;

-- name: rotation_has_it :none
-- $1 peer, $2 the new secret
-- What they refused while we signed with the old one is due at once.
UPDATE federation_peers
   SET secret_rotation_at = now(), rotation_unsure_until = NULL, rotation_error = NULL,
       rotation_attempt_until = least(rotation_attempt_until, now()),
       next_attempt_at = least(next_attempt_at, now())
 WHERE id = $1 AND pending_hmac_secret = $2
   AND rotation_by = 'us' AND secret_rotation_at IS NULL;

-- name: rotation_refused :none
-- $1 peer, $2 the new secret, $3 why
-- Forgotten, unless an earlier attempt may still be taken.
UPDATE federation_peers
   SET pending_hmac_secret = NULL, rotation_by = NULL, rotation_began_at = NULL,
       rotation_unsure_until = NULL, rotation_error = $3,
       rotation_attempt_until = least(rotation_attempt_until, now())
 WHERE id = $1 AND pending_hmac_secret = $2
   AND rotation_by = 'us' AND secret_rotation_at IS NULL
   AND coalesce(rotation_unsure_until, '-infinity') <= now();

-- name: rotation_unknown :none
-- $1 peer, $2 the new secret, $3 why
UPDATE federation_peers
   SET rotation_attempt_until = least(rotation_attempt_until, now()), rotation_error = $3
 WHERE id = $1 AND pending_hmac_secret = $2
   AND rotation_by = 'us' AND secret_rotation_at IS NULL;

-- name: rotation_unsent :none
-- $1 peer, $2 why
-- Nobody took the question up, or it was not to be sent: nothing was made.
UPDATE federation_peers
   SET rotation_attempt_until = NULL,
       rotation_error = CASE $2 WHEN 'timeout' THEN 'no outboxd took it up' ELSE $2 END
 WHERE id = $1 AND rotation_by IS NULL;
