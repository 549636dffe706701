-- name: channel_of_member :opt
SELECT c.id, c.owner_id, c.federated_id, c.is_group, c.pair_low, c.pair_high, c.seq,
       c.created_at
  FROM dm_channels c
  JOIN dm_members m ON m.dm_channel_id = c.id AND m.user_id = $2
 WHERE c.id = $1 AND c.deleted_at IS NULL;

-- name: channel_pair_find :opt
SELECT c.id, c.owner_id, c.federated_id, c.is_group, c.pair_low, c.pair_high, c.seq,
       c.created_at
  FROM dm_channels c
 WHERE c.pair_low = $1 AND c.pair_high = $2 AND NOT c.is_group;

-- name: channels_make_pairs :many
WITH new AS (
    INSERT INTO dm_channels (pair_low, pair_high, federated_id, created_at)
    SELECT low, high, federated_id, date_trunc('milliseconds', clock_timestamp())
      FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t(low, high, federated_id)
     ORDER BY low, high
    ON CONFLICT (pair_low, pair_high) WHERE NOT is_group DO NOTHING
    RETURNING id, owner_id, federated_id, is_group, pair_low, pair_high, seq, created_at),
members AS (
    INSERT INTO dm_members (dm_channel_id, user_id)
    SELECT id, pair_low FROM new
    UNION
    SELECT id, pair_high FROM new)
SELECT * FROM new;

-- name: channel_name_pair :none
UPDATE dm_channels SET federated_id = $2
 WHERE id = $1 AND NOT is_group AND federated_id IS NULL;

-- name: channel_closed_set :none
UPDATE dm_members SET closed = $3
 WHERE dm_channel_id = $1 AND user_id = $2 AND closed <> $3;

-- The entity of a reaction's line is the reaction: which message that was under
-- is looked up for those lines only.
-- name: channel_events_since :many
SELECT seq, kind, entity_id, actor_id, at,
       CASE WHEN kind IN ('reaction_added', 'reaction_removed') THEN coalesce(
            (SELECT dm_message_id FROM dm_reactions WHERE id = entity_id),
            (SELECT dm_message_id FROM reaction_tombstones WHERE id = entity_id))
       END AS message_id
  FROM conversation_events
 WHERE conversation_id = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3;

-- name: channel_reach :one
SELECT seq, events_kept_from FROM dm_channels WHERE id = $1;

-- What a list of conversations shows: one, or all open ones of a person, the
-- one with the latest message first.
-- name: channel_lines :many
SELECT c.id, c.owner_id, c.federated_id, c.created_at,
       l.id AS last_id, l.user_id AS last_user_id, l.content AS last_content,
       l.created_at AS last_created_at
  FROM dm_channels c
  LEFT JOIN LATERAL (
       SELECT m.id, m.user_id, m.content, m.created_at
         FROM dm_messages m
        WHERE m.dm_channel_id = c.id
        ORDER BY m.created_at DESC, m.id DESC
        LIMIT 1) l ON true
 WHERE c.deleted_at IS NULL
   AND c.id IN (SELECT $1::bigint
                UNION ALL
                SELECT dm_channel_id FROM dm_members WHERE user_id = $2 AND NOT closed)
 ORDER BY coalesce(l.created_at, c.created_at) DESC, c.id DESC;

-- name: channel_members :many
SELECT dm_channel_id, user_id FROM dm_members
 WHERE dm_channel_id = ANY($1::bigint[])
 ORDER BY dm_channel_id, user_id;
