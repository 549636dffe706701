-- name: outbox_place :one
SELECT CASE WHEN c.is_group THEN c.federated_id END AS federated_id,
       s.dm_relay_scope = 'all_peers' AS to_all
  FROM dm_channels c CROSS JOIN instance_settings s
 WHERE c.id = $1;
