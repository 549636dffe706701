-- The queue of activities owed to inboxes. Collation "C" is the index's.

-- name: outbound_enqueue :one
-- $1 activity, $2 payload, $3 inbox, $4 actor, $5 transport, $6 shared
SELECT id::text AS id FROM fediverse_enqueue($1, $2, $3, $4::text::uuid, $5, $6);

-- name: outbound_enqueue_all :many
-- $1 activity, $2 payload, $3 inboxes, $4 actor, $5 transport, $6 shared
SELECT e.id::text AS id
  FROM unnest($3::text[]) WITH ORDINALITY AS i (inbox, place)
 CROSS JOIN LATERAL fediverse_enqueue($1, $2, i.inbox, $4::text::uuid, $5, $6) AS e
 ORDER BY i.place;

-- name: outbound_lines :many
SELECT q.id::text AS id, q.activity_id, q.target_inbox, q.status,
       q.attempts::bigint AS attempts, q.last_error, q.next_retry_at, q.created_at, q.delivered_at
  FROM fediverse_outbound_queue q
 WHERE q.id = ANY ($1::text[]::uuid[])
 ORDER BY q.created_at, q.seq;

-- name: outbound_of_activity :many
SELECT q.id::text AS id, q.activity_id, q.target_inbox, q.status,
       q.attempts::bigint AS attempts, q.last_error, q.next_retry_at, q.created_at, q.delivered_at
  FROM fediverse_outbound_queue q
 WHERE q.activity_id COLLATE "C" = $1
 ORDER BY q.created_at, q.seq LIMIT 1000;

-- name: outbound_find :one
SELECT q.id::text AS id, q.activity_id, q.payload_json, q.target_inbox, q.target_domain, q.status,
       q.attempts::bigint AS attempts, q.max_attempts::bigint AS max_attempts, q.last_error,
       q.next_retry_at, q.created_at, q.delivered_at, q.actor_user_id::text AS actor_user_id,
       q.transport, q.shared, q.unauthorized::bigint AS unauthorized,
       q.unresolved::bigint AS unresolved, a.username AS actor_name,
       coalesce(a.is_instance, false) AS actor_is_instance, a.key_made_at,
       CASE WHEN a.deleted_at IS NULL THEN false
            WHEN fediverse_is_object(q.payload_json)
                THEN q.payload_json::json ->> 'type' IS DISTINCT FROM 'Delete'
            ELSE true END AS silenced,
       a.deleted_at IS NOT NULL AS departed
  FROM fediverse_outbound_queue q
  LEFT JOIN fediverse_actors a ON a.id = q.actor_user_id
 WHERE q.id = $1::text::uuid;

-- name: outbound_claim :many
-- $1 room, $2 lease, $3 worker
-- Hops from domain to domain through the index of what is pending; the first
-- row of a domain is the first that is due. A dead domain is claimed for its
-- rows to be buried.
WITH RECURSIVE hop AS (
    (SELECT target_domain COLLATE "C" AS domain, next_retry_at
       FROM fediverse_outbound_queue
      WHERE status = 'pending'
      ORDER BY target_domain COLLATE "C", next_retry_at NULLS FIRST LIMIT 1)
    UNION ALL
    SELECT n.domain, n.next_retry_at
      FROM hop CROSS JOIN LATERAL (
        SELECT q.target_domain COLLATE "C" AS domain, q.next_retry_at
          FROM fediverse_outbound_queue q
         WHERE q.status = 'pending' AND q.target_domain COLLATE "C" > hop.domain
         ORDER BY q.target_domain COLLATE "C", q.next_retry_at NULLS FIRST LIMIT 1) AS n),
due AS MATERIALIZED (
    SELECT hop.domain, d.domain IS NULL AS fresh
      FROM hop LEFT JOIN fediverse_domains d ON d.domain = hop.domain
     WHERE (SELECT s.fediverse FROM instance_settings s)
       AND (d.domain IS NULL
            OR (d.lease_until <= now() AND coalesce(d.paused_until, '-infinity') <= now()))
       AND (d.state = 'dead'
            OR (coalesce(hop.next_retry_at, '-infinity') <= now()
                AND coalesce(d.not_before, '-infinity') <= now()))
     ORDER BY d.served_at NULLS FIRST, hop.domain
     LIMIT $1),
free AS MATERIALIZED (
    SELECT d.domain FROM fediverse_domains d
     WHERE d.domain IN (SELECT domain FROM due WHERE NOT fresh) AND d.lease_until <= now()
       FOR NO KEY UPDATE SKIP LOCKED),
added AS (
    INSERT INTO fediverse_domains AS d (domain, lease_worker, lease_token, lease_until, served_at)
    SELECT domain, $3, gen_random_uuid(), now() + $2, now() FROM due WHERE fresh ORDER BY domain
        ON CONFLICT (domain) DO NOTHING
    RETURNING d.domain, d.lease_token),
held AS (
    UPDATE fediverse_domains d
       SET lease_worker = $3, lease_token = gen_random_uuid(), lease_until = now() + $2,
           served_at = now()
      FROM free WHERE d.domain = free.domain
    RETURNING d.domain, d.lease_token)
SELECT domain, lease_token::text AS token FROM added
UNION ALL
SELECT domain, lease_token::text FROM held;

-- name: outbound_claim_oldest :many
-- $1 lease, $2 worker
WITH oldest AS MATERIALIZED (
    SELECT q.target_domain COLLATE "C" AS domain
      FROM fediverse_outbound_queue q
      LEFT JOIN fediverse_domains d ON d.domain = q.target_domain COLLATE "C"
     WHERE q.status = 'pending' AND (q.next_retry_at IS NULL OR q.next_retry_at <= now())
       AND (d.domain IS NULL
            OR (d.lease_until <= now() AND d.not_before <= now() AND d.state <> 'dead'
                AND coalesce(d.paused_until, '-infinity') <= now()))
       AND NOT fediverse_is_blocked(q.target_domain)
     ORDER BY q.created_at, q.seq
     LIMIT 1)
INSERT INTO fediverse_domains AS d (domain, lease_worker, lease_token, lease_until, served_at)
SELECT domain, $2, gen_random_uuid(), now() + $1, now() FROM oldest
    ON CONFLICT (domain) DO UPDATE
   SET lease_worker = excluded.lease_worker, lease_token = excluded.lease_token,
       lease_until = excluded.lease_until, served_at = now()
 WHERE d.lease_until <= now()
RETURNING d.domain, d.lease_token::text AS token;

-- name: outbound_lock :opt
-- $1 domain, $2 token
SELECT d.state, d.failures::bigint AS failures, d.failures_since, d.last_failure_at,
       d.failure_days::bigint AS failure_days,
       coalesce(d.last_failure_day - date '1970-01-01', 0)::bigint AS last_day,
       d.pauses::bigint AS pauses, nullif(d.not_before, '-infinity') AS not_before, d.gone,
       d.died_at,
       coalesce(d.style_wanted,
           CASE WHEN d.style_at > now() - interval '30 days' THEN d.style END) AS style,
       s.fediverse_first_style AS first_style, s.fediverse_transport AS transport,
       s.fediverse AND coalesce(d.paused_until, '-infinity') <= now() AND NOT b.blocked AS fediverse,
       b.blocked,
       d.last_success_at IS NOT NULL AND d.state = 'closed' AND d.failure_days = 0 AS well
  FROM fediverse_domains d CROSS JOIN instance_settings s
 CROSS JOIN LATERAL (SELECT fediverse_is_blocked(d.domain) AS blocked) AS b
 WHERE d.domain = $1 AND d.lease_token = $2::text::uuid AND d.lease_until > now()
   FOR NO KEY UPDATE OF d;

-- name: outbound_domain_write :none
-- $1 domain, $2 state, $3 failures, $4 since, $5 last failure, $6 days, $7 last day, $8 pauses,
-- $9 not before, $10 gone, $11 died, $12 style that worked, $13 the one known did not,
-- $14 answered, $15 code, $16 error
UPDATE fediverse_domains
   SET state = $2, failures = $3, failures_since = $4, last_failure_at = $5, failure_days = $6,
       last_failure_day = CASE WHEN $6 > 0 THEN date '1970-01-01' + $7::integer END,
       pauses = $8, not_before = coalesce($9, '-infinity'), gone = $10, died_at = $11,
       style = CASE WHEN $12 IS NOT NULL THEN $12 WHEN NOT $13 THEN style END,
       style_at = CASE WHEN $12 IS NOT NULL THEN now() WHEN NOT $13 THEN style_at END,
       last_success_at = CASE WHEN $14 THEN now() ELSE last_success_at END,
       last_code = nullif($15, 0), last_error = $16
 WHERE domain = $1;

-- name: outbound_rows_write :none
-- $1 ids, $2 statuses, $3 a request was made, $4 errors, $5 next attempts, $6 it was a 401,
-- $7 its name led nowhere
UPDATE fediverse_outbound_queue q
   SET status = r.status, attempts = q.attempts + r.made::integer, last_error = r.error,
       next_retry_at = r.retry_at, unauthorized = q.unauthorized + r.unauthorized::integer,
       unresolved = q.unresolved + r.unresolved::integer,
       delivered_at = CASE WHEN r.status = 'delivered' THEN now() END
  FROM unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::timestamptz[],
           $6::boolean[], $7::boolean[])
           AS r (id, status, made, error, retry_at, unauthorized, unresolved)
 WHERE q.id = r.id::uuid AND q.status = 'pending';

-- name: outbound_inboxes_gone :none
-- $1 domain, $2 inboxes, $3 codes
-- What is still owed there ends with a 410, and so do its followers.
WITH unfollowed AS (
    DELETE FROM fediverse_followers f
     USING unnest($2::text[], $3::bigint[]) AS r (inbox, code)
     WHERE f.inbox = r.inbox AND r.code = 410),
marked AS (
    INSERT INTO fediverse_gone_inboxes AS g (inbox, domain, code)
    SELECT DISTINCT ON (inbox) inbox, $1, code::integer
      FROM unnest($2::text[], $3::bigint[]) AS r (inbox, code)
     ORDER BY inbox, code DESC
        ON CONFLICT (inbox) DO UPDATE SET code = excluded.code, gone_at = now())
UPDATE fediverse_outbound_queue q
   SET status = 'failed', next_retry_at = NULL, last_error = format('the inbox is gone (%s)', r.code)
  FROM unnest($2::text[], $3::bigint[]) AS r (inbox, code)
 WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = $1 AND q.target_inbox = r.inbox
   AND r.code = 410;

-- name: outbound_bury :one
-- $1 domain, $2 at most, $3 why
WITH doomed AS MATERIALIZED (
    SELECT id FROM fediverse_outbound_queue
     WHERE status = 'pending' AND target_domain COLLATE "C" = $1
     LIMIT $2 FOR UPDATE),
buried AS (
    UPDATE fediverse_outbound_queue q
       SET status = 'dead', next_retry_at = NULL, last_error = $3
      FROM doomed WHERE q.id = doomed.id
    RETURNING q.id)
SELECT count(*) AS buried FROM buried;

-- name: outbound_read :many
-- $1 domain, $2 how many, $3 under way
WITH due AS MATERIALIZED (
    (SELECT id, created_at, seq FROM fediverse_outbound_queue
      WHERE status = 'pending' AND target_domain COLLATE "C" = $1 AND next_retry_at IS NULL
        AND id <> ALL ($3::text[]::uuid[])
      ORDER BY created_at, seq LIMIT $2)
    UNION ALL
    (SELECT id, created_at, seq FROM fediverse_outbound_queue
      WHERE status = 'pending' AND target_domain COLLATE "C" = $1 AND next_retry_at <= now()
        AND id <> ALL ($3::text[]::uuid[])
      ORDER BY next_retry_at, created_at, seq LIMIT $2))
SELECT q.id::text AS id, q.activity_id, q.payload_json, q.target_inbox, q.target_domain, q.status,
       q.attempts::bigint AS attempts, q.max_attempts::bigint AS max_attempts, q.last_error,
       q.next_retry_at, q.created_at, q.delivered_at, q.actor_user_id::text AS actor_user_id,
       q.transport, q.shared, q.unauthorized::bigint AS unauthorized,
       q.unresolved::bigint AS unresolved, a.username AS actor_name,
       coalesce(a.is_instance, false) AS actor_is_instance, a.key_made_at,
       CASE WHEN a.deleted_at IS NULL THEN false
            WHEN fediverse_is_object(q.payload_json)
                THEN q.payload_json::json ->> 'type' IS DISTINCT FROM 'Delete'
            ELSE true END AS silenced,
       a.deleted_at IS NOT NULL AS departed
  FROM due JOIN fediverse_outbound_queue q USING (id)
  LEFT JOIN fediverse_actors a ON a.id = q.actor_user_id
 ORDER BY due.created_at, due.seq
 LIMIT $2;

-- name: outbound_is_blocked :one
-- $1 inbox
SELECT fediverse_is_blocked(fediverse_domain_of($1)) AS blocked;

-- name: outbound_moved :none
-- $1 inbox, $2 where it led
SELECT fediverse_inbox_moved($1, $2);

-- name: outbound_release :none
-- $1 domain, $2 token
UPDATE fediverse_domains
   SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity'
 WHERE domain = $1 AND lease_token = $2::text::uuid;

-- name: outbound_probe :many
-- $1 how many, $2 how often
-- Dead for long, but not gone: whoever asks has marked that it does.
WITH due AS MATERIALIZED (
    SELECT d.domain FROM fediverse_domains d
     WHERE d.state = 'dead' AND NOT d.gone AND greatest(d.died_at, d.probed_at) < now() - $2
       AND (SELECT s.fediverse FROM instance_settings s) AND NOT fediverse_is_blocked(d.domain)
     ORDER BY greatest(d.died_at, d.probed_at)
     LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE fediverse_domains d SET probed_at = now()
  FROM due WHERE d.domain = due.domain
RETURNING d.domain, '' AS token;

-- name: outbound_signs_rfc9421 :none
SELECT fediverse_signs_rfc9421($1);

-- name: outbound_revive :none
SELECT fediverse_revive($1);
