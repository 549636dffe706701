-- name: sync_publish :one
SELECT sync_publish($1::integer, $2::interval)::bigint AS published;

-- A page is a range of an index, whatever the planner believed about the tables
-- when they were empty.
-- name: sync_by_index :none
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true);

-- What the asker does not take part in is as unknown as what isn't there.
-- name: sync_contexts :many
SELECT c.id::text AS id
  FROM (SELECT id FROM dm_channels WHERE is_group AND federated_id = $2
        UNION ALL
        SELECT id FROM dm_channels WHERE NOT is_group AND federated_id = $2) c
 WHERE EXISTS (SELECT FROM federation_sync_entries e
                WHERE e.host = $1 AND e.context_type = 'dm' AND e.context_id = c.id::text);

-- name: sync_page :many
WITH page AS MATERIALIZED (
    SELECT e.log_id, e.ready_ms
      FROM federation_sync_entries e
     WHERE e.host = $1 AND e.context_type = $2 AND e.ready_ms > $3
     ORDER BY e.ready_ms
     FETCH FIRST ($4) ROWS WITH TIES)
SELECT p.ready_ms, l.context_type, l.context_id, l.mutation_type AS event_type, l.entity_id,
       l.payload, l.mutated_at AS at, m.id AS message_id, m.dm_channel_id, m.user_id,
       m.reply_to_id, m.content, m.edited_at, m.created_at, m.encryption_version,
       m.source_instance, m.source_message_id
  FROM page p
  JOIN federation_mutation_log l ON l.id = p.log_id
  LEFT JOIN dm_messages m ON m.id = CASE WHEN l.payload IS NULL THEN l.entity_id::bigint END
 ORDER BY p.ready_ms, p.log_id;

-- Of some conversations ($5).
-- name: sync_page_of :many
WITH page AS MATERIALIZED (
    SELECT e.log_id, e.ready_ms
      FROM unnest($5::text[]) AS c(id) CROSS JOIN LATERAL (
           SELECT e.log_id, e.ready_ms
             FROM federation_sync_entries e
            WHERE e.host = $1 AND e.context_type = $2 AND e.context_id = c.id AND e.ready_ms > $3
            ORDER BY e.ready_ms
            FETCH FIRST ($4) ROWS WITH TIES) e
     ORDER BY e.ready_ms
     FETCH FIRST ($4) ROWS WITH TIES)
SELECT p.ready_ms, l.context_type, l.context_id, l.mutation_type AS event_type, l.entity_id,
       l.payload, l.mutated_at AS at, m.id AS message_id, m.dm_channel_id, m.user_id,
       m.reply_to_id, m.content, m.edited_at, m.created_at, m.encryption_version,
       m.source_instance, m.source_message_id
  FROM page p
  JOIN federation_mutation_log l ON l.id = p.log_id
  LEFT JOIN dm_messages m ON m.id = CASE WHEN l.payload IS NULL THEN l.entity_id::bigint END
 ORDER BY p.ready_ms, p.log_id;

-- name: sync_places :many
SELECT c.id AS conversation, CASE WHEN c.is_group THEN c.federated_id END AS federated_id,
       m.user_id
  FROM dm_channels c
  LEFT JOIN dm_members m ON m.dm_channel_id = c.id
 WHERE c.id = ANY($1::bigint[])
 ORDER BY c.id, m.user_id;

-- name: sync_local_ids :many
SELECT k.place, m.id
  FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k(origin, id, place)
 CROSS JOIN LATERAL (
       SELECT m.id FROM dm_messages m
        WHERE m.source_instance = k.origin AND m.source_message_id = k.id LIMIT 1) m;
