-- How others know a message; other_*: the one host that knows it otherwise,
-- where it was written before its author's home sent it on. Of a group that
-- nobody elsewhere knows nothing is said. $2: we.
-- name: outbox_names :opt
SELECT CASE WHEN own.is THEN $2 ELSE m.source_instance END AS origin,
       CASE WHEN own.is THEN m.id::text ELSE m.source_message_id END AS id,
       coalesce(w.host, a.host) AS other_host,
       coalesce(w.origin, a.origin) AS other_origin,
       coalesce(CASE WHEN w.host IS NOT NULL THEN m.source_message_id END, a.birth_id)
           AS other_id,
       NOT c.is_group AND s.dm_relay_scope = 'all_peers' AS to_all
  FROM dm_messages m
 CROSS JOIN instance_settings s
  JOIN dm_channels c ON c.id = m.dm_channel_id
       AND NOT (c.is_group AND c.federated_id IS NULL)
  JOIN users u ON u.id = m.user_id
 CROSS JOIN LATERAL (
       SELECT m.source_instance IS NULL OR u.home_instance IS NULL AS is) own
  LEFT JOIN federation_peers w ON own.is AND w.origin = m.source_instance
  LEFT JOIN LATERAL (
       SELECT p.host, p.origin, t.birth_id
         FROM message_aliases t JOIN federation_peers p ON p.host = t.host
        WHERE t.dm_message_id = m.id LIMIT 1) a ON true
 WHERE m.id = $1;
