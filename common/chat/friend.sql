-- The pairs, then the people, against whoever deletes one of them.
-- name: friends_lock :none
SELECT pg_advisory_xact_lock(7236840, k.key)
  FROM (SELECT DISTINCT hashtext(low || ':' || high) AS key
          FROM unnest($1::bigint[], $2::bigint[]) AS t(low, high)
         ORDER BY 1) k;

-- name: friends_people :many
SELECT id, is_deleted FROM users WHERE id = ANY($1::bigint[]) ORDER BY id FOR KEY SHARE;

-- name: friends_read :many
SELECT k.place, r.id AS request, r.from_id AS asker, r.created_at AS asked_at,
       f.created_at AS since, m.low_over_at, m.high_over_at, m.ended_at
  FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS k(low, high, place)
  LEFT JOIN LATERAL (
       SELECT * FROM friend_requests
        WHERE least(from_id, to_id) = k.low AND greatest(from_id, to_id) = k.high
          AND status = 'pending' LIMIT 1) r ON true
  LEFT JOIN LATERAL (
       SELECT * FROM friends
        WHERE least(user_id, friend_id) = k.low AND greatest(user_id, friend_id) = k.high
        LIMIT 1) f ON true
  LEFT JOIN LATERAL (
       SELECT * FROM friend_marks WHERE low_id = k.low AND high_id = k.high LIMIT 1) m ON true;

-- A request that was withdrawn goes, one that was answered stays as history.
-- name: friend_requests_end :none
WITH k AS (SELECT * FROM unnest($1::bigint[], $2::text[]) AS t(id, answer)),
gone AS (
    DELETE FROM friend_requests r USING k WHERE r.id = k.id AND k.answer IS NULL)
UPDATE friend_requests r SET status = k.answer
  FROM k WHERE r.id = k.id AND k.answer IS NOT NULL;

-- name: friend_requests_move :none
UPDATE friend_requests r SET created_at = k.asked_at
  FROM unnest($1::bigint[], $2::timestamptz[]) AS k(id, asked_at) WHERE r.id = k.id;

-- name: friend_requests_add :many
INSERT INTO friend_requests (from_id, to_id, created_at)
SELECT asker, asked, asked_at
  FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS t(asker, asked, asked_at)
RETURNING id, from_id, to_id, status, created_at;

-- name: friends_begin :none
INSERT INTO friends (user_id, friend_id, created_at)
SELECT asker, accepter, since
  FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS t(asker, accepter, since)
    ON CONFLICT (least(user_id, friend_id), greatest(user_id, friend_id))
    DO UPDATE SET created_at = excluded.created_at;

-- name: friends_end :none
DELETE FROM friends f
 USING unnest($1::bigint[], $2::bigint[]) AS k(low, high)
 WHERE least(f.user_id, f.friend_id) = k.low AND greatest(f.user_id, f.friend_id) = k.high;

-- name: friend_marks_set :none
INSERT INTO friend_marks (low_id, high_id, low_over_at, high_over_at, ended_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[],
                     $5::timestamptz[])
    ON CONFLICT (low_id, high_id) DO UPDATE
   SET low_over_at = excluded.low_over_at, high_over_at = excluded.high_over_at,
       ended_at = excluded.ended_at;

-- name: friend_request_by_id :opt
SELECT id, from_id, to_id, status, created_at FROM friend_requests WHERE id = $1;
