-- Forward only, and not by what was said before the person marked it unread.
-- name: read_states_move :many
INSERT INTO read_states AS r (user_id, channel_id, last_read_message_id, updated_at)
SELECT person, channel, max(message), coalesce(max(said_at), now())
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[])
    AS t(person, channel, message, said_at)
 GROUP BY person, channel
 ORDER BY person, channel
    ON CONFLICT (user_id, channel_id) DO UPDATE
   SET last_read_message_id = excluded.last_read_message_id,
       updated_at = excluded.updated_at
 WHERE r.last_read_message_id < excluded.last_read_message_id
   AND (r.marked_unread_at IS NULL OR r.marked_unread_at < excluded.updated_at)
RETURNING user_id, channel_id;

-- name: read_state_message :opt
SELECT id FROM dm_messages WHERE id = $1 AND dm_channel_id = $2;

-- name: read_state_reached :one
SELECT last_read_message_id AS id FROM read_states WHERE user_id = $1 AND channel_id = $2;

-- name: read_state_mark_unread :none
INSERT INTO read_states (user_id, channel_id, last_read_message_id, updated_at,
       marked_unread_at)
VALUES ($1, $2, coalesce($3, 0), clock_timestamp(), clock_timestamp())
    ON CONFLICT (user_id, channel_id) DO UPDATE
   SET last_read_message_id = excluded.last_read_message_id,
       updated_at = excluded.updated_at, marked_unread_at = excluded.marked_unread_at;

-- name: read_states_of :many
SELECT r.channel_id, r.last_read_message_id
  FROM read_states r
  JOIN dm_members m ON m.dm_channel_id = r.channel_id AND m.user_id = r.user_id
 WHERE r.user_id = $1 AND r.last_read_message_id > 0
 ORDER BY r.channel_id;
