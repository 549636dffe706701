-- The messages and their lines at once; the conversations are locked. Ids: one
-- fresh snowflake, then the ones behind it.
-- name: messages_insert :many
WITH moved AS (
    UPDATE dm_channels c SET seq = c.seq + k.added
      FROM unnest($2::bigint[], $3::bigint[]) AS k(id, added)
     WHERE c.id = k.id
    RETURNING c.id, c.seq, c.seq - k.added AS base),
opened AS (
    UPDATE dm_members SET closed = false
     WHERE dm_channel_id = ANY($2::bigint[]) AND closed),
new AS (
    INSERT INTO dm_messages AS m (id, dm_channel_id, user_id, content, edited_at,
           created_at, source_instance, source_message_id)
    SELECT CASE place WHEN 1 THEN snowflake() ELSE nextval('snowflake_ids') END,
           channel, author, content, edited_at, created_at, $1, id
      FROM (SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::text[],
                                 $7::timestamptz[], $8::timestamptz[], $9::text[])
                WITH ORDINALITY
                AS t(channel, author, content, edited_at, created_at, id, place)
             ORDER BY place) k
    RETURNING m.id, m.dm_channel_id, m.user_id, m.source_message_id),
told AS (
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT moved.id, moved.base + k.step, 'message_created', new.id, new.user_id
      FROM unnest($9::text[], $10::bigint[]) AS k(id, step)
      JOIN new ON new.source_message_id = k.id
      JOIN moved ON moved.id = new.dm_channel_id)
SELECT new.id, moved.id AS conversation, moved.seq
  FROM new JOIN moved ON moved.id = new.dm_channel_id
 ORDER BY new.id;

-- Known from now on as what is not here.
-- name: messages_forget :none
INSERT INTO message_tombstones (source_instance, source_message_id)
SELECT $1, k.id FROM unnest($2::text[]) AS k(id) ORDER BY k.id
    ON CONFLICT DO NOTHING;

-- Who names it first has the name.
-- name: messages_alias :none
INSERT INTO message_aliases (host, birth_id, dm_message_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
    ON CONFLICT DO NOTHING;

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
    SELECT source_instance, source_message_id FROM gone WHERE source_instance IS NOT NULL
        ON CONFLICT DO NOTHING)
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM gone m;
