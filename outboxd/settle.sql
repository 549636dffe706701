-- Booking what became of a batch, under the peer's lease.

-- name: settle_hold :one
-- Locks the lease for the statements that follow in this transaction.
SELECT id AS peer FROM federation_peers
 WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()
   FOR NO KEY UPDATE;

-- name: settle_set_aside :none
-- $1 peer, $2 ids, $3 the peer's words, $4 when again
-- Bounds: a plan that was made while the outbox was small joins all that the peer
-- has in the index.
UPDATE federation_outbox o
   SET retry_at = r.at, refusals = o.refusals + 1, reason = r.reason
  FROM unnest($2::bigint[], $3::text[], $4::timestamptz[]) AS r (id, reason, at)
 WHERE o.peer_id = $1 AND o.id = r.id
   AND o.id BETWEEN (SELECT min(i) FROM unnest($2::bigint[]) i)
                AND (SELECT max(i) FROM unnest($2::bigint[]) i);

-- name: settle_peer_answered :none
-- $1 peer, $2 token, $3 code, $4 its upload limit, $5 batch limit, $6 how long the
-- answer took, of which the mean moves an eighth
UPDATE federation_peers
   SET transport_failures = 0, auth_failures = 0, last_error = NULL, last_code = $3,
       last_seen_at = now(), last_accepted_at = now(),
       remote_max_upload_size = coalesce($4, remote_max_upload_size),
       retry_batch_limit = $5,
       latency_ms = (coalesce(latency_ms, $6) * 7 + $6) / 8
 WHERE id = $1 AND lease_token = $2::uuid;

-- name: settle_peer_state :opt
-- Apart from the others: naming the status signals to every daemon.
UPDATE federation_peers SET status = $3
 WHERE id = $1 AND lease_token = $2::uuid AND status <> 'revoked'
RETURNING id AS peer;

-- name: settle_peer_limit :none
UPDATE federation_peers SET retry_batch_limit = $3, last_code = $4
 WHERE id = $1 AND lease_token = $2::uuid;

-- name: settle_peer_paused :none
-- $1 peer, $2 token, $3 code, $4 how long to wait, $5 what it took in a minute before
UPDATE federation_peers
   SET last_failure_at = now(), last_error = 'asked us to wait', last_code = $3,
       next_attempt_at = now() + $4, limit_per_minute = $5, limited_at = now()
 WHERE id = $1 AND lease_token = $2::uuid;

-- name: settle_peer_failed :none
-- $1 peer, $2 token, $3 and $4 failures to add, $5 why, $6 code, $7 how long to wait
UPDATE federation_peers
   SET transport_failures = transport_failures + $3, auth_failures = auth_failures + $4,
       last_failure_at = now(), last_error = $5, last_code = $6,
       next_attempt_at = now() + $7
 WHERE id = $1 AND lease_token = $2::uuid;
