-- The queue of activities owed to inboxes. Collation "C" is the index's.

-- part: item
-- q: fediverse_outbound_queue, a: fediverse_actors
       q.id::text AS id, q.activity_id, q.payload_json, q.target_inbox, q.target_domain, q.status,
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

-- part: domain
-- d: fediverse_domains, s: instance_settings, b: blocked
       d.domain, d.state, d.failures::bigint AS failures, d.failures_since, d.last_failure_at,
       d.failure_days::bigint AS failure_days,
       coalesce(d.last_failure_day - date '1970-01-01', 0)::bigint AS last_day,
       d.pauses::bigint AS pauses, nullif(d.not_before, '-infinity') AS not_before, d.gone,
       d.died_at,
       coalesce(d.style_wanted,
           CASE WHEN d.style_at > now() - interval '30 days' THEN d.style END) AS style,
       s.fediverse_first_style AS first_style, s.fediverse_transport AS usual_transport,
       s.fediverse AND coalesce(d.paused_until, '-infinity') <= now() AND NOT b.blocked AS fediverse,
       b.blocked,
       d.last_success_at IS NOT NULL AND d.state = 'closed' AND d.failure_days = 0 AS well,
       d.last_error IS NULL
           AND coalesce(d.last_success_at > now() - interval '10 seconds', false) AS praised

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
SELECT
-- use: item
  FROM fediverse_outbound_queue q
  LEFT JOIN fediverse_actors a ON a.id = q.actor_user_id
 WHERE q.id = $1::text::uuid;

-- name: outbound_claim :many
-- $1 room, $2 lease, $3 worker
-- Hops from domain to domain through the index of what is pending; the first
-- row of a domain is the first that is due. A dead domain is claimed for its
-- rows to be buried. With each the first two rows that are due, if its row is
-- still what this snapshot saw: else somebody had it meanwhile, and sent them.
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
    SELECT hop.domain, d.domain IS NULL AS fresh, d.xmin AS version
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
    SELECT l.domain, l.version = due.version AS unmoved
      FROM due CROSS JOIN LATERAL (
           SELECT d.domain, d.xmin AS version FROM fediverse_domains d
            WHERE d.domain = due.domain AND d.lease_until <= now()
              FOR NO KEY UPDATE SKIP LOCKED) l
     WHERE NOT due.fresh),
added AS (
    INSERT INTO fediverse_domains AS d (domain, lease_worker, lease_token, lease_until, served_at)
    SELECT domain, $3, gen_random_uuid(), now() + $2, now() FROM due WHERE fresh ORDER BY domain
        ON CONFLICT (domain) DO NOTHING
    RETURNING d.*, true AS unmoved),
held AS (
    UPDATE fediverse_domains d
       SET lease_worker = $3, lease_token = gen_random_uuid(), lease_until = now() + $2,
           served_at = now()
      FROM free WHERE d.domain = free.domain
    RETURNING d.*, free.unmoved),
leased AS (SELECT * FROM added UNION ALL SELECT * FROM held)
SELECT d.lease_token::text AS token,
-- use: domain
       ,
-- use: item
  FROM leased d
 CROSS JOIN instance_settings s
 CROSS JOIN LATERAL (SELECT fediverse_is_blocked(d.domain) AS blocked) AS b
  LEFT JOIN LATERAL (
        (SELECT * FROM fediverse_outbound_queue
          WHERE status = 'pending' AND target_domain COLLATE "C" = d.domain
            AND next_retry_at IS NULL AND d.unmoved
          ORDER BY next_retry_at NULLS FIRST, created_at, seq LIMIT 2)
        UNION ALL
        (SELECT * FROM fediverse_outbound_queue
          WHERE status = 'pending' AND target_domain COLLATE "C" = d.domain
            AND next_retry_at <= now() AND d.unmoved
          ORDER BY next_retry_at NULLS FIRST, created_at, seq LIMIT 2)
        LIMIT 2) AS q ON true
  LEFT JOIN fediverse_actors a ON a.id = q.actor_user_id
 ORDER BY d.domain;

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

-- name: outbound_lock :many
-- $1 domains, $2 tokens
-- In order, so that nobody waits in a circle.
SELECT
-- use: domain
  FROM unnest($1::text[], $2::text[]) AS h (domain, token)
  JOIN fediverse_domains d ON d.domain = h.domain
 CROSS JOIN instance_settings s
 CROSS JOIN LATERAL (SELECT fediverse_is_blocked(d.domain) AS blocked) AS b
 WHERE d.lease_token = h.token::uuid AND d.lease_until > now()
 ORDER BY d.domain
   FOR NO KEY UPDATE OF d;

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
-- $1 domains, $2 how many of each, $3 under way, $4 no more of one once they have so many bytes
-- The first orders by what is NULL throughout, for so it is the order of the index.
WITH away AS MATERIALIZED (SELECT a.id::uuid AS id FROM unnest($3::text[]) AS a (id))
SELECT
-- use: item
  FROM unnest($1::text[], $2::bigint[]) AS h (domain, most)
 CROSS JOIN LATERAL (
    SELECT due.*, sum(octet_length(due.payload_json)) OVER (ORDER BY due.created_at, due.seq)
                      - octet_length(due.payload_json) AS bytes_before
      FROM ((SELECT * FROM fediverse_outbound_queue
              WHERE status = 'pending' AND target_domain COLLATE "C" = h.domain
                AND next_retry_at IS NULL AND id NOT IN (SELECT id FROM away)
              ORDER BY next_retry_at NULLS FIRST, created_at, seq LIMIT h.most)
            UNION ALL
            (SELECT * FROM fediverse_outbound_queue
              WHERE status = 'pending' AND target_domain COLLATE "C" = h.domain
                AND next_retry_at <= now() AND id NOT IN (SELECT id FROM away)
              ORDER BY next_retry_at NULLS FIRST, created_at, seq LIMIT h.most)) AS due
     ORDER BY due.created_at, due.seq
     LIMIT h.most) AS q
  LEFT JOIN fediverse_actors a ON a.id = q.actor_user_id
 WHERE q.bytes_before < $4
 ORDER BY q.created_at, q.seq;

-- name: outbound_is_blocked :one
-- $1 inbox
SELECT fediverse_is_blocked(fediverse_domain_of($1)) AS blocked;

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
