-- name: outbox_group :one
SELECT owner_id, federated_id FROM dm_channels WHERE id = $1;

-- Only an owner's home may begin a group elsewhere; who acts must be ours.
-- name: outbox_arrivals :many
SELECT c.id AS channel, CASE WHEN p.home_instance IS NULL THEN p.id ELSE o.id END AS actor
  FROM dm_members m
  JOIN users p ON p.id = m.user_id
  JOIN dm_channels c ON c.id = m.dm_channel_id AND c.is_group AND c.deleted_at IS NULL
  JOIN users o ON o.id = c.owner_id AND o.home_instance IS NULL
 WHERE m.user_id = $1
 ORDER BY c.id
   FOR NO KEY UPDATE OF c;
