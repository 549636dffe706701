-- In id order; $2: also where he has reacted.
-- name: departure_conversations :many
SELECT c.id, c.is_group AND m.user_id IS NOT NULL AND c.deleted_at IS NULL AS is_group
  FROM dm_channels c
  LEFT JOIN dm_members m ON m.dm_channel_id = c.id AND m.user_id = $1
 WHERE c.id IN (
       SELECT dm_channel_id FROM dm_members WHERE user_id = $1
       UNION
       SELECT t.dm_channel_id
         FROM dm_reactions r JOIN dm_messages t ON t.id = r.dm_message_id
        WHERE r.user_id = $1 AND $2)
 ORDER BY c.id
   FOR NO KEY UPDATE OF c;

-- Who hears of it, and he himself, in id order; against whoever is about to
-- refer to him, for his name goes. Once he is gone they refer to nobody.
-- name: departure_listeners :many
WITH near AS (
    SELECT $1::bigint AS listener
    UNION
    SELECT f.friend_id FROM friends f WHERE f.user_id = $1
    UNION
    SELECT f.user_id FROM friends f WHERE f.friend_id = $1
    UNION
    SELECT m.user_id
      FROM dm_members mine JOIN dm_members m ON m.dm_channel_id = mine.dm_channel_id
     WHERE mine.user_id = $1)
SELECT $1::bigint AS person, u.id AS listener
  FROM near JOIN users u ON u.id = near.listener
 WHERE u.id = $1 OR (u.password_hash <> '!federation-replicated' AND NOT u.is_deleted)
 ORDER BY u.id
   FOR UPDATE OF u;

-- From here on nothing that is written tells who he was.
-- name: departure_mask :none
UPDATE users
   SET display_name = 'Deleted User', avatar = NULL, banner = NULL, accent_color = NULL,
       avatar_color = NULL, bio = NULL, custom_status = NULL, status = 'offline'
 WHERE id = $1 AND NOT is_deleted;

-- name: departure_reactions :many
SELECT t.dm_channel_id AS conversation, r.dm_message_id AS message, r.emoji
  FROM dm_reactions r JOIN dm_messages t ON t.id = r.dm_message_id
 WHERE r.user_id = $1
 ORDER BY r.id;

-- The password is a text that no hash is equal to.
-- name: departure_bury :none
UPDATE users
   SET username = '!deleted:' || id, display_name = NULL,
       password_hash = '!' || gen_random_uuid(), replicated_instances = '[]',
       is_admin = false, is_deleted = true, discoverable = false, show_activity = false,
       profile_updated_at = NULL, federation_registry_updated_at = NULL
 WHERE id = $1;

-- What people of other nodes have to do with him.
-- name: departure_ties :many
SELECT 'friend' AS kind, u.id AS other, f.created_at AS at
  FROM friends f JOIN users u ON u.id IN (f.user_id, f.friend_id) AND u.id <> $1
 WHERE $1 IN (f.user_id, f.friend_id) AND u.home_instance IS NOT NULL AND NOT u.is_deleted
UNION ALL
SELECT CASE WHEN r.from_id = $1 THEN 'asked' ELSE 'was_asked' END, u.id, r.created_at
  FROM friend_requests r JOIN users u ON u.id IN (r.from_id, r.to_id) AND u.id <> $1
 WHERE $1 IN (r.from_id, r.to_id) AND r.status = 'pending'
   AND u.home_instance IS NOT NULL AND NOT u.is_deleted
 ORDER BY other, kind;

-- name: departure_forget :none
WITH friends_gone AS (DELETE FROM friends WHERE $1 IN (user_id, friend_id)),
requests AS (DELETE FROM friend_requests WHERE $1 IN (from_id, to_id)),
marks AS (DELETE FROM friend_marks WHERE $1 IN (low_id, high_id)),
reads AS (DELETE FROM read_states WHERE user_id = $1),
places AS (DELETE FROM user_federation_registry WHERE user_id = $1),
tokens AS (DELETE FROM sessions WHERE user_id = $1),
actors AS (UPDATE fediverse_actors SET deleted_at = now()
            WHERE user_id = $1 AND deleted_at IS NULL)
UPDATE dm_members SET closed = true WHERE user_id = $1 AND NOT closed;

-- Conversations of these without a living member.
-- name: departure_orphans :none
DELETE FROM dm_channels c
 WHERE c.id = ANY($1::bigint[])
   AND NOT EXISTS (
       SELECT FROM dm_members m JOIN users u ON u.id = m.user_id AND NOT u.is_deleted
        WHERE m.dm_channel_id = c.id);

-- name: person_of_home :opt
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u
 WHERE u.home_instance = $1 AND u.home_user_id = $2 AND NOT u.is_deleted;
