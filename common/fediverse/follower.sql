-- name: follower_add :none
INSERT INTO fediverse_followers AS f
       (actor_id, follower, inbox, shared_inbox, follow_id, accepted_at)
VALUES ($1::uuid, $2, $3, $4, $5, CASE WHEN $6::boolean THEN now() END)
ON CONFLICT (actor_id, follower) DO UPDATE
   SET inbox = excluded.inbox, shared_inbox = excluded.shared_inbox,
       follow_id = excluded.follow_id,
       accepted_at = coalesce(f.accepted_at, excluded.accepted_at);

-- name: follower_remove :none
DELETE FROM fediverse_followers
 WHERE follower = $1 AND (follow_id = $2 OR actor_id = $3::uuid);

-- name: followers_count :one
SELECT count(*) AS total FROM fediverse_followers
 WHERE actor_id = $1::uuid AND accepted_at IS NOT NULL;

-- name: following_answer :none
-- $1 who answers, $2 the Follow's id, $3 whom it answers, $4 yes
UPDATE fediverse_following
   SET accepted_at = CASE WHEN $4 THEN coalesce(accepted_at, now()) END,
       rejected_at = CASE WHEN NOT $4 THEN coalesce(rejected_at, now()) END
 WHERE followed = $1 AND (follow_id = $2 OR actor_id = $3::text::uuid);
