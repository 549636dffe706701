-- name: session_begin :one
INSERT INTO sessions (user_id, key_hash, expires_at)
VALUES ($1::bigint, $2::bytea, now() + $3::interval)
RETURNING id;

-- name: session_find :opt
-- A session that began before the password was changed is void.
SELECT s.key_hash,
       u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin,
       u.discoverable, u.profile_updated_at, u.created_at, u.home_instance,
       u.home_user_id, u.replicated_instances::text AS replicated_instances,
       u.show_activity, u.is_deleted
  FROM sessions s
  JOIN users u ON u.id = s.user_id
 WHERE s.id = $1::bigint
   AND s.expires_at > now()
   AND NOT u.is_deleted
   AND (u.password_changed_at IS NULL OR s.created_at >= u.password_changed_at);
