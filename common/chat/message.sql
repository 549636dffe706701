-- The row lock of the conversation comes first: what follows is in its order.
-- name: message_insert :opt
WITH moved AS (
    UPDATE dm_channels c SET seq = seq + 1
     WHERE c.id = $1
       AND ($4::bigint IS NULL OR EXISTS (
            SELECT FROM dm_messages r WHERE r.id = $4 AND r.dm_channel_id = $1))
    RETURNING c.id, c.seq),
opened AS (
    UPDATE dm_members SET closed = false WHERE dm_channel_id = $1 AND closed
    RETURNING user_id),
new AS (
    INSERT INTO dm_messages AS m (dm_channel_id, user_id, content, reply_to_id, created_at)
    SELECT id, $2, $3, $4, date_trunc('milliseconds', clock_timestamp()) FROM moved
    RETURNING m.*),
told AS (
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT moved.id, moved.seq, 'message_created', new.id, $2 FROM moved, new)
SELECT new.id, new.dm_channel_id, new.user_id, new.reply_to_id, new.content, new.type,
       new.edited_at, new.created_at, new.source_message_id, new.source_instance,
       moved.seq
  FROM new, moved;

-- name: message_find :opt
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM dm_messages m WHERE m.id = $1;

-- Every edit is newer than the one before, whatever the clock says.
-- name: message_edit :opt
WITH moved AS (
    UPDATE dm_channels c SET seq = seq + 1 WHERE c.id = $2 RETURNING c.id, c.seq),
new AS (
    UPDATE dm_messages m
       SET content = $3,
           edited_at = greatest(date_trunc('milliseconds', clock_timestamp()),
                                m.edited_at + interval '1 millisecond')
      FROM moved
     WHERE m.id = $1 AND m.dm_channel_id = moved.id
    RETURNING m.*),
told AS (
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT moved.id, moved.seq, 'message_updated', new.id, new.user_id FROM moved, new)
SELECT new.id, new.dm_channel_id, new.user_id, new.reply_to_id, new.content, new.type,
       new.edited_at, new.created_at, new.source_message_id, new.source_instance,
       moved.seq
  FROM new, moved;

-- name: message_delete :opt
WITH moved AS (
    UPDATE dm_channels c SET seq = seq + 1 WHERE c.id = $2 RETURNING c.id, c.seq),
gone AS (
    DELETE FROM dm_messages m USING moved
     WHERE m.id = $1 AND m.dm_channel_id = moved.id
    RETURNING m.*),
grave AS (
    INSERT INTO message_tombstones (source_instance, source_message_id)
    SELECT source_instance, source_message_id FROM gone WHERE source_instance IS NOT NULL
    ON CONFLICT DO NOTHING),
told AS (
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT moved.id, moved.seq, 'message_deleted', gone.id, gone.user_id FROM moved, gone)
SELECT gone.id, gone.dm_channel_id, gone.user_id, gone.reply_to_id, gone.content, gone.type,
       gone.edited_at, gone.created_at, gone.source_message_id, gone.source_instance,
       moved.seq
  FROM gone, moved;

-- name: message_one :many
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM dm_messages m WHERE m.id = ANY($1::bigint[]);

-- The newest, or those before a message, newest first. A message that is gone
-- meanwhile is known by the time in its id: it came no earlier than it was
-- written, so nothing is left out.
-- name: message_page :many
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM dm_messages m
 WHERE m.dm_channel_id = $1
 ORDER BY m.created_at DESC, m.id DESC
 LIMIT $2;

-- name: message_page_before :many
SELECT m.id, m.dm_channel_id, m.user_id, m.reply_to_id, m.content, m.type, m.edited_at,
       m.created_at, m.source_message_id, m.source_instance, 0::bigint AS seq
  FROM dm_messages m
 WHERE m.dm_channel_id = $1
   AND (m.created_at, m.id) <
       (coalesce((SELECT b.created_at FROM dm_messages b WHERE b.id = $3 AND b.dm_channel_id = $1),
                 to_timestamp((($3 >> 22) + 1704067200000) / 1000.0)), $3)
 ORDER BY m.created_at DESC, m.id DESC
 LIMIT $2;
