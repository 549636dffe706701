-- name: remote_key_find :opt
SELECT key_id, owner, pem, inbox, shared_inbox, fetched_at, refetched_at,
       failed_until, failed_finally
  FROM fediverse_keys WHERE key_id = $1;

-- name: remote_key_store :none
INSERT INTO fediverse_keys AS k
       (key_id, owner, pem, inbox, shared_inbox, fetched_at)
VALUES ($1, $2, $3, $4, $5, now())
ON CONFLICT (key_id) DO UPDATE
   SET owner = excluded.owner, pem = excluded.pem,
       inbox = coalesce(excluded.inbox, k.inbox),
       shared_inbox = coalesce(excluded.shared_inbox, k.shared_inbox),
       fetched_at = now(), failed_until = NULL, failed_finally = false;

-- name: remote_key_fail :none
INSERT INTO fediverse_keys (key_id, failed_until, failed_finally)
VALUES ($1, now() + $2, $3)
ON CONFLICT (key_id) DO UPDATE
   SET failed_until = excluded.failed_until, failed_finally = excluded.failed_finally;

-- name: remote_key_doubt :none
UPDATE fediverse_keys SET refetched_at = now() WHERE key_id = $1;

-- name: remote_actor_inboxes :none
UPDATE fediverse_keys SET inbox = $2, shared_inbox = $3 WHERE owner = $1;

-- name: remote_key_count_fetch :one
INSERT INTO fediverse_fetches AS f (origin, since, fetches) VALUES ($1, now(), 1)
ON CONFLICT (origin) DO UPDATE
   SET fetches = CASE WHEN f.since > now() - interval '1 minute' THEN f.fetches + 1 ELSE 1 END,
       since = CASE WHEN f.since > now() - interval '1 minute' THEN f.since ELSE now() END
RETURNING fetches,
       greatest(1, ceil(extract(epoch FROM since + interval '1 minute' - now())))::bigint AS wait_s;

-- name: remote_actor_known :one
SELECT EXISTS (SELECT FROM fediverse_keys WHERE owner = $1)
    OR EXISTS (SELECT FROM fediverse_followers WHERE follower = $1) AS known;

-- name: remote_actor_forget :none
WITH keys AS (DELETE FROM fediverse_keys WHERE owner = $1),
following AS (DELETE FROM fediverse_following WHERE followed = $1)
DELETE FROM fediverse_followers WHERE follower = $1;
