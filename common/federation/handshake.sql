-- name: handshake_lock :none
SELECT pg_advisory_xact_lock(hashtextextended($1, 7236839002));

-- name: handshake_row :opt
SELECT id, origin, host, instance_name, status, instance_id, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, nonce_supported, secret_rotation_at,
       secret_rotated_at, rotation_by, rotation_attempt_until,
       auto_rotate_interval_days, last_synced_at,
       transport_failures, last_failure_at, last_seen_at, created_at
  FROM federation_peers WHERE host = $1 FOR NO KEY UPDATE;

-- name: handshake_row_of :opt
SELECT id, origin, host, instance_name, status, instance_id, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, nonce_supported, secret_rotation_at,
       secret_rotated_at, rotation_by, rotation_attempt_until,
       auto_rotate_interval_days, last_synced_at,
       transport_failures, last_failure_at, last_seen_at, created_at
  FROM federation_peers WHERE id = $1 FOR NO KEY UPDATE;

-- name: handshake_id :one
SELECT snowflake() AS id;

-- name: handshake_terms :one
SELECT s.peer_accept_policy AS policy,
       EXISTS (SELECT FROM federation_allowed_origins WHERE origin = $1) AS allowed
  FROM instance_settings s;

-- name: handshake_counters :one
SELECT count(*) FILTER (
           WHERE regexp_replace(origin, '^https?://|:[0-9]+$', '', 'g') = $1) AS to_host,
       count(*) AS overall
  FROM s2s_requests
 WHERE kind = 'counter' AND created_at > now() - interval '1 minute';

-- name: handshake_save :none
-- The row is locked, or does not exist and its host is locked.
INSERT INTO federation_peers AS p (id, origin, host, status, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, last_seen_at, auto_rotate_interval_days)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
       s.default_auto_rotate_interval_days
  FROM instance_settings s
ON CONFLICT (id) DO UPDATE
   SET status = excluded.status, hmac_secret = excluded.hmac_secret,
       pending_hmac_secret = excluded.pending_hmac_secret,
       offered_secret = excluded.offered_secret,
       offered_at = excluded.offered_at,
       initiated_at = excluded.initiated_at,
       attempt_until = excluded.attempt_until,
       approval_token = excluded.approval_token,
       last_seen_at = excluded.last_seen_at,
       next_attempt_at = now();

-- name: handshake_drop :none
WITH purged AS (DELETE FROM federation_outbox WHERE peer_id = $1)
DELETE FROM federation_peers WHERE id = $1;

-- name: handshake_drop_refused :none
-- Unless a callback is on its way, whose secret may just now be taken.
DELETE FROM federation_peers p
 WHERE p.id = $1 AND p.status = 'pending'
   AND NOT EXISTS (SELECT FROM s2s_requests r
                    WHERE r.peer_id = p.id AND r.kind = 'counter'
                      AND r.answered_at IS NULL AND r.deadline > now());

-- name: handshake_drop_countered :none
-- A row goes with the one request that made it (both have the time of their
-- transaction): any other may have left our secret with the peer.
DELETE FROM federation_peers p
 USING s2s_requests r
 WHERE r.id = $1 AND p.id = r.peer_id AND p.created_at = r.created_at
   AND p.status = 'pending' AND p.initiated_at IS NULL
   AND NOT EXISTS (SELECT FROM s2s_requests o
                    WHERE o.peer_id = p.id AND o.id <> r.id);

-- name: handshake_name_keep :none
UPDATE federation_peers
   SET instance_name = coalesce($2, instance_name),
       instance_id = coalesce($3, instance_id)
 WHERE id = $1;

-- name: handshake_pause_over :none
UPDATE federation_peers SET attempt_until = NULL
 WHERE id = $1 AND status = 'pending';

-- name: handshake_offers :many
SELECT body FROM s2s_requests
 WHERE peer_id = $1 AND kind = 'counter' AND body IS NOT NULL
   AND created_at > now() - interval '1 minute';

-- name: handshake_callback :opt
SELECT id, kind, peer_id, origin, body, ephemeral, deadline, answered_at,
       outcome, status, answer, error
  FROM s2s_requests
 WHERE peer_id = $1 AND kind = 'counter'
   AND answered_at IS NULL AND deadline > now()
 ORDER BY id DESC LIMIT 1;

-- name: handshake_instance :one
SELECT instance_id::text AS instance_id FROM instance_settings;

-- name: handshake_kept :none
UPDATE federation_peers SET pending_hmac_secret = $3
 WHERE id = $1 AND hmac_secret = $2 AND status <> 'revoked' AND rotation_by IS NULL;

-- name: handshake_proved :none
-- Fenced by the secret that was sent. Their secret may also replace ours in a
-- row that an answer to our own accept has made active meanwhile.
UPDATE federation_peers
   SET status = 'active', hmac_secret = $3, pending_hmac_secret = $4,
       attempt_until = NULL, approval_token = NULL, last_seen_at = now(),
       next_attempt_at = now()
 WHERE id = $1 AND hmac_secret = $2 AND rotation_by IS NULL
   AND (status IN ('pending', 'awaiting_approval')
        OR status IN ('active', 'unreachable') AND $3 <> $2);
