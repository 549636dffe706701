-- name: reactions_of :many
SELECT id, dm_message_id, user_id, emoji, created_at
  FROM dm_reactions
 WHERE dm_message_id = ANY($1::bigint[])
 ORDER BY dm_message_id, id;

-- name: reaction_message :opt
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM dm_messages m
  JOIN dm_channels c ON c.id = m.dm_channel_id AND c.deleted_at IS NULL
  JOIN dm_members p ON p.dm_channel_id = c.id AND p.user_id = $2
 WHERE m.id = $1
   FOR NO KEY UPDATE OF c;

-- What was said before of each; no row: the message is gone.
-- name: reactions_state :many
SELECT k.place, date_trunc('milliseconds', clock_timestamp()) AS now, r.id, r.created_at,
       r.changed_at,
       (SELECT max(t.removed_at) FROM reaction_tombstones t
         WHERE t.dm_message_id = k.message AND t.user_id = k.person
           AND t.emoji = k.emoji) AS removed_at,
       (SELECT count(*) FROM dm_reactions o
         WHERE o.dm_message_id = k.message AND o.user_id = k.person) AS many
  FROM unnest($1::bigint[], $2::bigint[], $3::text[])
           WITH ORDINALITY AS k(message, person, emoji, place)
 CROSS JOIN LATERAL (SELECT FROM dm_messages WHERE id = k.message LIMIT 1) m
  LEFT JOIN dm_reactions r ON r.dm_message_id = k.message AND r.user_id = k.person
       AND r.emoji = k.emoji;

-- name: reactions_insert :many
WITH k AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[],
                         $5::timestamptz[])
        WITH ORDINALITY AS t(message, person, emoji, created_at, changed_at, place)),
new AS (
    INSERT INTO dm_reactions (dm_message_id, user_id, emoji, created_at, changed_at)
    SELECT message, person, emoji, created_at, changed_at FROM k ORDER BY place
    RETURNING id, dm_message_id, user_id, emoji)
SELECT k.place, new.id
  FROM k JOIN new ON new.dm_message_id = k.message AND new.user_id = k.person
       AND new.emoji = k.emoji;

-- name: reactions_repeat :none
UPDATE dm_reactions r SET changed_at = k.at
  FROM unnest($1::bigint[], $2::timestamptz[]) AS k(id, at)
 WHERE r.id = k.id;

-- Without an id there was nothing to remove: only an add to come is meant.
-- name: reactions_delete :none
WITH gone AS (
    DELETE FROM dm_reactions WHERE id = ANY($1::bigint[]))
INSERT INTO reaction_tombstones (id, dm_message_id, user_id, emoji, removed_at)
SELECT coalesce(id, snowflake()), message, person, emoji, removed_at
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::timestamptz[])
    AS t(id, message, person, emoji, removed_at);
