-- A group is told to its people only, and by its federated id.
-- name: outbox_place :one
SELECT CASE WHEN c.is_group THEN c.federated_id END AS federated_id,
       c.is_group AND c.federated_id IS NULL AS is_local,
       NOT c.is_group AND c.federated_id IS NULL AS is_unnamed,
       NOT c.is_group AND s.dm_relay_scope = 'all_peers' AS to_all
  FROM dm_channels c CROSS JOIN instance_settings s
 WHERE c.id = $1;
