-- name: outbox_group :one
SELECT owner_id, federated_id FROM dm_channels WHERE id = $1;

-- Only an owner's home may begin a group elsewhere.
-- name: outbox_arrivals :many
SELECT c.id AS channel
  FROM dm_members m
  JOIN dm_channels c ON c.id = m.dm_channel_id AND c.is_group AND c.deleted_at IS NULL
  JOIN users o ON o.id = c.owner_id AND o.home_instance IS NULL
 WHERE m.user_id = $1
 ORDER BY c.id;
