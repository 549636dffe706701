-- name: user_by_id :one
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u WHERE u.id = $1;

-- name: user_by_name :opt
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u WHERE u.username = $1 AND NOT u.is_deleted;

-- name: users_by_ids :many
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u WHERE u.id = ANY($1::bigint[]);

-- name: user_register_lock :none
SELECT pg_advisory_xact_lock(7236839002);

-- The relay's stub of this person, which has no password of its own.
-- name: user_living_identity :opt
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u
 WHERE u.home_instance = $1 AND u.home_user_id = $2 AND NOT u.is_deleted
   FOR UPDATE;

-- name: user_stub_upgrade :one
UPDATE users u
   SET username = $2,
       password_hash = $3,
       display_name = coalesce(nullif(u.display_name, ''), $4),
       avatar_color = coalesce(nullif(u.avatar_color, ''), $5),
       password_changed_at = now()
 WHERE u.id = $1
RETURNING u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash;

-- name: user_insert :opt
INSERT INTO users AS u (username, display_name, password_hash, avatar_color,
       home_instance, home_user_id, is_admin)
SELECT $1, $2, $3, $4, $5, $6,
       $5::text IS NULL AND NOT EXISTS (SELECT FROM users WHERE home_instance IS NULL)
    ON CONFLICT (username) DO NOTHING
RETURNING u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash;

-- name: user_status_set :none
UPDATE users SET status = $2 WHERE id = $1 AND status <> $2;

-- name: username_taken :one
SELECT EXISTS (SELECT FROM users WHERE username = $1) AS taken;

-- name: user_by_any_id :opt
SELECT id FROM users
 WHERE (id = $1 OR (home_user_id = $2 AND home_instance IS NOT NULL)) AND NOT is_deleted
 ORDER BY id = $1 DESC, id LIMIT 1;

-- name: user_password_change :none
UPDATE users SET password_hash = $2, password_changed_at = now()
 WHERE id = $1 AND password_hash = $3 AND NOT is_deleted;

-- name: user_sessions_end :none
DELETE FROM sessions WHERE user_id = $1;
