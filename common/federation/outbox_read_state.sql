-- The conversation as others know it, and what they know of where the mark
-- stands: system messages are our own affair.
-- name: outbox_read_place :opt
SELECT c.federated_id, m.id AS message
  FROM dm_channels c
  JOIN dm_messages r ON r.id = $2 AND r.dm_channel_id = c.id
 CROSS JOIN LATERAL (
       SELECT id FROM dm_messages
        WHERE dm_channel_id = c.id AND type = 'user'
          AND (created_at, id) <= (r.created_at, r.id)
        ORDER BY created_at DESC, id DESC LIMIT 1) m
 WHERE c.id = $1 AND NOT (c.is_group AND c.federated_id IS NULL);
