-- Ids: one fresh snowflake, then the ones behind it.
-- name: notices_insert :many
WITH new AS (
    INSERT INTO dm_messages AS m (id, dm_channel_id, user_id, content, type, created_at)
    SELECT CASE place WHEN 1 THEN snowflake() ELSE nextval('snowflake_ids') END,
           channel, actor, content, 'system',
           date_trunc('milliseconds', clock_timestamp())
      FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])
                WITH ORDINALITY AS t(channel, actor, content, place)
             ORDER BY place) k
    RETURNING m.id)
SELECT id FROM new ORDER BY id;
