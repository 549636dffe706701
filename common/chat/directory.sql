-- Account names fold alike in every locale; display names also as the
-- database folds them.
-- name: directory_search :many
SELECT u.id, u.username, u.display_name, u.avatar, u.banner, u.accent_color,
       u.avatar_color, u.bio, u.status, u.custom_status, u.is_admin, u.discoverable,
       u.profile_updated_at, u.created_at, u.home_instance, u.home_user_id,
       u.replicated_instances::text AS replicated_instances, u.show_activity,
       u.is_deleted, u.password_hash
  FROM users u
 WHERE NOT u.is_deleted AND u.id <> $1
   AND (strpos(lower(u.username COLLATE "C"), lower($2 COLLATE "C")) > 0
        OR strpos(lower(u.display_name COLLATE "C"), lower($2 COLLATE "C")) > 0
        OR strpos(lower(u.display_name), lower($2)) > 0)
 ORDER BY u.id
 LIMIT 10;

-- name: directory_total :one
SELECT count(*) AS total
  FROM users u CROSS JOIN instance_settings s
 WHERE s.discovery_enabled AND u.home_instance IS NULL AND u.discoverable
   AND NOT u.is_deleted AND u.id <> $1
   AND ($2 = '' OR strpos(lower(u.username COLLATE "C"), lower($2 COLLATE "C")) > 0
        OR strpos(lower(u.display_name COLLATE "C"), lower($2 COLLATE "C")) > 0
        OR strpos(lower(u.display_name), lower($2)) > 0);

-- name: directory_page :many
WITH page AS MATERIALIZED (
    SELECT u.*
      FROM users u CROSS JOIN instance_settings s
     WHERE s.discovery_enabled AND u.home_instance IS NULL AND u.discoverable
       AND NOT u.is_deleted AND u.id <> $1
       AND ($2 = '' OR strpos(lower(u.username COLLATE "C"), lower($2 COLLATE "C")) > 0
            OR strpos(lower(u.display_name COLLATE "C"), lower($2 COLLATE "C")) > 0
            OR strpos(lower(u.display_name), lower($2)) > 0)
     ORDER BY u.created_at DESC, u.id DESC
     LIMIT $3 OFFSET $4),
mine AS (
    SELECT friend_id AS person FROM friends WHERE user_id = $1
    UNION
    SELECT user_id FROM friends WHERE friend_id = $1),
shared AS (
    SELECT p.id, count(*) AS count
      FROM page p JOIN friends f ON p.id IN (f.user_id, f.friend_id)
      JOIN mine ON mine.person = f.user_id + f.friend_id - p.id
     GROUP BY p.id)
SELECT p.id, p.username, p.display_name, p.avatar, p.banner, p.avatar_color, p.bio,
       p.status, p.custom_status, p.created_at, coalesce(shared.count, 0) AS mutual_friends,
       CASE WHEN mine.person IS NOT NULL THEN 'friends'
            WHEN r.from_id = $1 THEN 'outbound_pending'
            WHEN r.to_id = $1 THEN 'inbound_pending'
            ELSE 'none' END AS relationship,
       CASE WHEN mine.person IS NULL THEN r.id END AS request
  FROM page p
  LEFT JOIN shared ON shared.id = p.id
  LEFT JOIN mine ON mine.person = p.id
  LEFT JOIN friend_requests r ON r.status = 'pending'
       AND least(r.from_id, r.to_id) = least(p.id, $1)
       AND greatest(r.from_id, r.to_id) = greatest(p.id, $1)
 ORDER BY mutual_friends DESC, p.created_at DESC, p.id DESC;
