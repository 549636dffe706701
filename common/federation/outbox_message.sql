-- A group is told to its people only, and by its federated id. $3: somebody who
-- may be typing ($2) sends: was it told a moment ago?
-- name: outbox_place :one
WITH typed AS (
    DELETE FROM typing_told
     WHERE $3::boolean AND dm_channel_id = $1 AND user_id = $2
    RETURNING told_at)
SELECT c.federated_id, c.is_group,
       NOT c.is_group AND s.dm_relay_scope = 'all_peers' AS to_all,
       EXISTS (SELECT FROM typed WHERE told_at > now() - interval '10 seconds') AS was_typing
  FROM dm_channels c CROSS JOIN instance_settings s
 WHERE c.id = $1;
