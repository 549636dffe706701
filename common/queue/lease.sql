-- Leases on federation_peers and fediverse_domains. What a holder writes names
-- its token.

-- name: lease_renew_peers :many
-- $1 their ids, $2 tokens, $3 how long
WITH kept AS (
    UPDATE federation_peers p
       SET lease_until = now() + $3
      FROM unnest($1::text[], $2::text[]) AS h (id, token)
     WHERE p.id = h.id::bigint AND p.lease_token = h.token::uuid AND p.lease_until > now()
    RETURNING h.token, p.status, p.paused_until)
SELECT token,
       status <> 'revoked' AND status <> 'awaiting_approval'
           AND coalesce(paused_until, '-infinity') <= now() AS may_go_on
  FROM kept;

-- name: lease_drop_peers :none
-- $1 worker, $2 the tokens it knows of
UPDATE federation_peers
   SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity'
 WHERE lease_worker = $1 AND lease_token::text <> ALL ($2::text[]);

-- name: lease_renew_domains :many
-- $1 their names, $2 tokens, $3 how long
UPDATE fediverse_domains d
   SET lease_until = now() + $3
  FROM unnest($1::text[], $2::text[]) AS h (domain, token)
 WHERE d.domain = h.domain AND d.lease_token = h.token::uuid AND d.lease_until > now()
RETURNING h.token, true AS may_go_on;

-- name: lease_drop_domains :none
-- $1 worker, $2 the tokens it knows of
UPDATE fediverse_domains
   SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity'
 WHERE lease_worker = $1 AND lease_token::text <> ALL ($2::text[]);

-- name: lease_reap :one
-- SKIP LOCKED: whoever is at work on the row is alive, or frees it himself.
WITH alive AS MATERIALIZED (
    SELECT l.classid::bigint << 32 | l.objid::bigint AS id
      FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
dead_peers AS MATERIALIZED (
    SELECT p.id FROM federation_peers p
     WHERE p.lease_worker IS NOT NULL AND p.lease_until > now()
       AND NOT EXISTS (SELECT FROM alive a WHERE a.id = p.lease_worker)
       FOR NO KEY UPDATE SKIP LOCKED),
dead_domains AS MATERIALIZED (
    SELECT d.domain FROM fediverse_domains d
     WHERE d.lease_worker IS NOT NULL AND d.lease_until > now()
       AND NOT EXISTS (SELECT FROM alive a WHERE a.id = d.lease_worker)
       FOR NO KEY UPDATE SKIP LOCKED),
peers AS (
    UPDATE federation_peers p
       SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity'
      FROM dead_peers WHERE p.id = dead_peers.id
    RETURNING 1),
domains AS (
    UPDATE fediverse_domains d
       SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity'
      FROM dead_domains WHERE d.domain = dead_domains.domain
    RETURNING 1)
SELECT (SELECT count(*) FROM peers) + (SELECT count(*) FROM domains) AS freed;
