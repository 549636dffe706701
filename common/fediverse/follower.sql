-- name: followers_count :one
SELECT count(*) AS total FROM fediverse_followers
 WHERE actor_id = $1::uuid AND accepted_at IS NOT NULL;
