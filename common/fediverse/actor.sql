-- name: fediverse_on :one
SELECT fediverse FROM instance_settings;

-- name: actor_by_name :opt
SELECT id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at
  FROM fediverse_actors WHERE lower(username) = lower($1) AND NOT is_instance;

-- name: actor_by_id :opt
SELECT id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at
  FROM fediverse_actors WHERE id = $1::uuid;

-- name: actor_by_user :opt
SELECT id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at
  FROM fediverse_actors WHERE user_id = $1;

-- name: actor_instance :opt
SELECT id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at
  FROM fediverse_actors WHERE is_instance;

-- name: actor_list :many
SELECT id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at
  FROM fediverse_actors ORDER BY created_at, id LIMIT 1000;

-- name: actor_count :one
SELECT count(*) AS total FROM fediverse_actors
 WHERE NOT is_instance AND deleted_at IS NULL;

-- name: actor_fresh_id :one
SELECT gen_random_uuid()::text AS id;

-- name: actor_make :opt
-- Nothing comes back when the name, the person or the instance has one.
INSERT INTO fediverse_actors (id, user_id, username, kind, display_name,
       is_instance, approves_followers, public_key_pem, private_key)
VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING
RETURNING id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at;

-- name: actor_rotate :opt
UPDATE fediverse_actors
   SET public_key_pem = $2, private_key = $3, key_made_at = now()
 WHERE id = $1::uuid AND deleted_at IS NULL
RETURNING id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at;

-- name: actor_delete :one
UPDATE fediverse_actors SET deleted_at = coalesce(deleted_at, now())
 WHERE id = $1::uuid
RETURNING id::text, user_id, username, kind, display_name, is_instance,
       approves_followers, public_key_pem, private_key, created_at, key_made_at,
       deleted_at;
