-- One probe of the index an id: LATERAL with LIMIT leaves the planner no
-- other way, whatever it believes about the table.
-- name: messages_known :many
SELECT m.source_message_id, m.id, m.dm_channel_id, m.user_id, u.home_instance,
       u.home_user_id, u.replicated_instances::text AS replicated_instances
  FROM unnest($2::text[]) AS k(id)
 CROSS JOIN LATERAL (
       SELECT * FROM dm_messages
        WHERE source_instance = $1 AND source_message_id = k.id LIMIT 1) m
 CROSS JOIN LATERAL (SELECT * FROM users WHERE id = m.user_id LIMIT 1) u
UNION ALL
SELECT t.source_message_id, NULL, NULL, NULL, NULL, NULL, NULL
  FROM unnest($2::text[]) AS k(id)
 CROSS JOIN LATERAL (
       SELECT source_message_id FROM message_tombstones
        WHERE source_instance = $1 AND source_message_id = k.id LIMIT 1) t;

-- Ids: one fresh snowflake, then the ones behind it.
-- name: messages_insert :many
WITH opened AS (
    UPDATE dm_members SET closed = false
     WHERE dm_channel_id = ANY($2::bigint[]) AND closed)
INSERT INTO dm_messages (id, dm_channel_id, user_id, content, edited_at, created_at,
       source_instance, source_message_id)
SELECT CASE place WHEN 1 THEN snowflake() ELSE nextval('snowflake_ids') END,
       channel, author, content, edited_at, created_at, $1, id
  FROM (SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::timestamptz[],
                             $6::timestamptz[], $7::text[])
            WITH ORDINALITY AS t(channel, author, content, edited_at, created_at, id, place)
         ORDER BY place) k
    ON CONFLICT (source_instance, source_message_id) WHERE source_instance IS NOT NULL
       DO NOTHING
RETURNING id, source_message_id;

-- Only what is newer than what we have.
-- name: messages_update :many
UPDATE dm_messages m SET content = k.content, edited_at = k.edited_at
  FROM unnest($1::bigint[], $2::text[], $3::timestamptz[]) AS k(id, content, edited_at)
 WHERE m.id = k.id AND (m.edited_at IS NULL OR m.edited_at < k.edited_at)
RETURNING m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq;

-- name: messages_delete :many
WITH gone AS (
    DELETE FROM dm_messages m WHERE m.id = ANY($1::bigint[])
    RETURNING m.*),
grave AS (
    INSERT INTO message_tombstones (source_instance, source_message_id)
    SELECT source_instance, source_message_id FROM gone ON CONFLICT DO NOTHING)
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM gone m;
