-- Everybody once for each of the people, people themselves included; nobody
-- who has no account here. Locked in id order.
-- name: profiles_listeners :many
WITH near AS (
    SELECT k.id AS person, k.id AS listener FROM unnest($1::bigint[]) AS k(id)
    UNION
    SELECT f.user_id, f.friend_id FROM friends f WHERE f.user_id = ANY($1::bigint[])
    UNION
    SELECT f.friend_id, f.user_id FROM friends f WHERE f.friend_id = ANY($1::bigint[])
    UNION
    SELECT mine.user_id, m.user_id
      FROM dm_members mine JOIN dm_members m ON m.dm_channel_id = mine.dm_channel_id
     WHERE mine.user_id = ANY($1::bigint[]))
SELECT near.person, u.id AS listener
  FROM near JOIN users u ON u.id = near.listener
 WHERE u.password_hash <> '!federation-replicated' AND NOT u.is_deleted
 ORDER BY u.id, near.person
   FOR NO KEY UPDATE OF u;

-- name: profile_change :one
UPDATE users u
   SET display_name = $2, avatar = $3, banner = $4, accent_color = $5, avatar_color = $6,
       bio = $7, custom_status = $8, status = $9, replicated_instances = $10::jsonb,
       home_user_id = $11, discoverable = $12, show_activity = $13,
       profile_updated_at = $14
 WHERE u.id = $1
RETURNING u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash;

-- An upload that is now an avatar is nobody's attachment any more.
-- name: profile_upload_taken :none
DELETE FROM attachments
 WHERE filename = ANY($1::text[]) AND uploader_id = $2 AND dm_message_id IS NULL;

-- name: profiles_replace :many
UPDATE users u
   SET display_name = k.display_name, avatar = k.avatar, banner = k.banner,
       accent_color = k.accent_color, avatar_color = k.avatar_color, bio = k.bio,
       profile_updated_at = k.updated_at
  FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[],
              $6::text[], $7::text[], $8::text[])
    AS k(id, updated_at, display_name, avatar, banner, accent_color, avatar_color, bio)
 WHERE u.id = k.id AND NOT u.is_deleted
   AND (u.profile_updated_at IS NULL OR u.profile_updated_at < k.updated_at)
RETURNING u.id AS person, u.id AS listener;

-- Who has an account here may have said so here, and keeps it if his home is silent.
-- name: profiles_place :many
WITH k AS (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[]) AS t(id, at, places)),
was AS MATERIALIZED (
    SELECT u.id, u.replicated_instances AS before, coalesce(k.places, '[]')::jsonb AS places
      FROM k JOIN users u ON u.id = k.id
     WHERE u.home_instance IS NOT NULL AND NOT u.is_deleted
       AND (k.places IS NOT NULL OR u.password_hash = '!federation-replicated')
       AND (u.profile_updated_at IS NULL OR u.profile_updated_at <= k.at)
     ORDER BY u.id
       FOR NO KEY UPDATE OF u)
UPDATE users u SET replicated_instances = was.places
  FROM was WHERE u.id = was.id AND was.before <> was.places
RETURNING u.id AS person, was.before::text AS before, was.places::text AS after;

-- name: mutual_friends :many
WITH near AS (
    SELECT user_id AS person, friend_id AS other FROM friends WHERE user_id IN ($1, $2)
    UNION
    SELECT friend_id, user_id FROM friends WHERE friend_id IN ($1, $2))
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM near a
  JOIN near b ON b.person = $2 AND b.other = a.other
  JOIN users u ON u.id = a.other AND NOT u.is_deleted
 WHERE a.person = $1
 ORDER BY u.id;
