-- name: peer_by_origin :opt
SELECT id, origin, host, instance_name, status, instance_id, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, nonce_supported, secret_rotation_at,
       secret_rotated_at, rotation_by, rotation_attempt_until,
       auto_rotate_interval_days, last_synced_at,
       transport_failures, last_failure_at, last_seen_at, created_at
  FROM federation_peers WHERE origin = $1;

-- name: peer_by_id :one
SELECT id, origin, host, instance_name, status, instance_id, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, nonce_supported, secret_rotation_at,
       secret_rotated_at, rotation_by, rotation_attempt_until,
       auto_rotate_interval_days, last_synced_at,
       transport_failures, last_failure_at, last_seen_at, created_at
  FROM federation_peers WHERE id = $1;

-- name: peer_list :many
SELECT id, origin, host, instance_name, status, instance_id, hmac_secret,
       pending_hmac_secret, offered_secret, offered_at, initiated_at,
       attempt_until, approval_token, nonce_supported, secret_rotation_at,
       secret_rotated_at, rotation_by, rotation_attempt_until,
       auto_rotate_interval_days, last_synced_at,
       transport_failures, last_failure_at, last_seen_at, created_at
  FROM federation_peers ORDER BY created_at, id;

-- name: peer_count :one
-- One round trip for the rate and the nonce of a verified request. The row of
-- the rate is held until the end of the transaction. Questions for what was
-- missed ($4) have a counter of their own: a long history needs many pages.
WITH rate AS (
    INSERT INTO peer_rates AS r (peer_id, since, requests, syncs)
    VALUES ($1, now(), CASE WHEN $4 THEN 0 ELSE 1 END, CASE WHEN $4 THEN 1 ELSE 0 END)
    ON CONFLICT (peer_id) DO UPDATE
       SET since = CASE WHEN r.since > now() - interval '1 minute'
                        THEN r.since ELSE now() END,
           requests = excluded.requests + CASE WHEN r.since > now() - interval '1 minute'
                                               THEN r.requests ELSE 0 END,
           syncs = excluded.syncs + CASE WHEN r.since > now() - interval '1 minute'
                                         THEN r.syncs ELSE 0 END
    RETURNING requests, syncs),
nonce AS (
    INSERT INTO nonces (origin, nonce)
    SELECT $2, $3::text WHERE $3::text IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING true)
SELECT CASE WHEN $4 THEN rate.syncs > $5
            ELSE rate.requests > s.relay_requests_per_minute END AS over_rate,
       EXISTS (SELECT FROM nonce) AS fresh
  FROM rate CROSS JOIN instance_settings s;

-- name: peer_activate :none
-- A pending peer showed a secret that only it can know.
UPDATE federation_peers
   SET status = 'active', attempt_until = NULL, last_seen_at = now(),
       next_attempt_at = now(), transport_failures = 0, auth_failures = 0
 WHERE id = $1 AND status = 'pending';

-- name: peer_settle :none
-- Both secrets verify until the other side has shown which one it uses.
UPDATE federation_peers
   SET hmac_secret = $2, pending_hmac_secret = $3
 WHERE id = $1 AND hmac_secret IN ($2, $4) AND rotation_by IS NULL;

-- name: peer_trial :none
UPDATE federation_peers
   SET next_attempt_at = now(), last_seen_at = now()
 WHERE id = $1 AND status = 'unreachable' AND next_attempt_at > now();

-- name: peer_seen :none
UPDATE federation_peers
   SET last_seen_at = now(), last_inbound_at = now(),
       nonce_supported = nonce_supported OR $2
 WHERE id = $1;
