-- name: park_answered :many
-- Which of the asks that requests here wait for have their answer.
SELECT id FROM s2s_requests
 WHERE id = ANY ($1::bigint[]) AND answered_at IS NOT NULL;
