-- name: accounts_owed :many
SELECT DISTINCT p.id AS person, o.home_instance AS host
  FROM dm_members m
  JOIN users p ON p.id = m.user_id AND p.home_instance IS NULL AND NOT p.is_deleted
   AND p.replicated_instances <> '[]'
  JOIN dm_members other ON other.dm_channel_id = m.dm_channel_id
  JOIN users o ON o.id = other.user_id AND o.home_instance IS NOT NULL AND NOT o.is_deleted
 WHERE m.dm_channel_id = ANY($1::bigint[])
 ORDER BY 1, 2;

-- Where the people are at home, and where they have accounts, who share a
-- friendship or a conversation with a person.
-- name: profile_places :many
SELECT DISTINCT u.home_instance, u.replicated_instances::text AS replicated_instances
  FROM users u
 WHERE u.id IN (
       SELECT friend_id FROM friends WHERE user_id = $1
       UNION
       SELECT user_id FROM friends WHERE friend_id = $1
       UNION
       SELECT m.user_id
         FROM dm_members mine JOIN dm_members m ON m.dm_channel_id = mine.dm_channel_id
        WHERE mine.user_id = $1)
   AND NOT u.is_deleted
   AND (u.home_instance IS NOT NULL OR u.replicated_instances <> '[]');
