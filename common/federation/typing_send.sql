-- No row: it was told a moment ago, or nobody elsewhere knows the group.
-- name: typing_start :opt
WITH told AS (
    INSERT INTO typing_told AS t (dm_channel_id, user_id)
    SELECT id, $2 FROM dm_channels WHERE id = $1
        ON CONFLICT (dm_channel_id, user_id) DO UPDATE SET told_at = now()
     WHERE t.told_at < now() - interval '1 second'
    RETURNING dm_channel_id)
SELECT c.federated_id, c.is_group
  FROM told JOIN dm_channels c ON c.id = told.dm_channel_id;

-- No row: nobody shows him typing any more.
-- name: typing_stop :opt
WITH told AS (
    DELETE FROM typing_told WHERE dm_channel_id = $1 AND user_id = $2
    RETURNING dm_channel_id, told_at)
SELECT c.federated_id, c.is_group
  FROM told JOIN dm_channels c ON c.id = told.dm_channel_id
 WHERE told.told_at > now() - interval '10 seconds';

-- name: typing_ask :many
INSERT INTO s2s_requests (kind, peer_id, origin, body, ephemeral, deadline)
SELECT 'relay', p.id, p.origin, $2, true, clock_timestamp() + interval '5 seconds'
  FROM federation_peers p
 CROSS JOIN instance_settings s
 WHERE p.host = ANY($1::text[]) AND p.status = 'active' AND s.federation_relay_enabled
RETURNING id;
