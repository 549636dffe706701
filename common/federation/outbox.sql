-- The people of a conversation, with what decides who is told.
-- name: outbox_people :many
SELECT u.id, u.username, u.display_name, u.avatar, u.avatar_color, u.home_instance,
       u.home_user_id, u.is_deleted, u.replicated_instances::text AS replicated_instances,
       c.is_group, c.federated_id, s.federation_relay_enabled AS enabled,
       s.dm_relay_scope = 'all_peers' AS to_all
  FROM dm_members m
  JOIN users u ON u.id = m.user_id
  JOIN dm_channels c ON c.id = m.dm_channel_id
  CROSS JOIN instance_settings s
 WHERE m.dm_channel_id = $1
 ORDER BY u.id;

-- name: outbox_add :many
INSERT INTO federation_outbox (peer_id, context_type, context_id, event_type, entity_id,
       payload, expires_at)
SELECT p.id, 'dm', $4::bigint::text, $5, $6::bigint::text, $7,
       now() + make_interval(days => s.federation_relay_ttl_days)
  FROM federation_peers p CROSS JOIN instance_settings s
 WHERE (p.host = ANY($1::text[]) OR $2)
   AND p.host IS DISTINCT FROM $3
   AND p.status IN ('active', 'unreachable', 'pending')
RETURNING (SELECT host FROM federation_peers WHERE id = peer_id) AS host;
