-- name: outbox_members :many
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.avatar_color, u.bio,
       u.home_instance, u.home_user_id, u.is_deleted,
       u.replicated_instances::text AS replicated_instances
  FROM dm_members m
  JOIN users u ON u.id = m.user_id
 WHERE m.dm_channel_id = $1
 ORDER BY u.id;

-- name: outbox_people :many
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.avatar_color, u.bio,
       u.home_instance, u.home_user_id, u.is_deleted,
       u.replicated_instances::text AS replicated_instances
  FROM users u
 WHERE u.id = ANY($1::bigint[])
 ORDER BY u.id;
