-- name: friend_requests_pending :many
SELECT id, from_id, to_id, status, created_at FROM friend_requests
 WHERE from_id = $1 AND status = 'pending'
UNION ALL
SELECT id, from_id, to_id, status, created_at FROM friend_requests
 WHERE to_id = $1 AND status = 'pending'
 ORDER BY created_at DESC, id DESC;

-- name: friends_of :many
SELECT friend_id AS person, created_at AS added_at FROM friends WHERE user_id = $1
UNION ALL
SELECT user_id, created_at FROM friends WHERE friend_id = $1
 ORDER BY added_at, person;
