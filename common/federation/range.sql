-- Messages by where they were born. $1, $2: host and id of each; $3: our own
-- ones and those that came homeward, which others know by our id; $4: the origin of the peer that speaks, whose host is $5. One
-- probe of an index an id: LATERAL with LIMIT leaves the planner no other
-- way, whatever it believes about the table.
-- name: messages_known :many
WITH k AS (
    SELECT t.host, t.id, coalesce(p.origin, '') AS origin
      FROM unnest($1::text[], $2::text[]) AS t(host, id)
      LEFT JOIN federation_peers p ON p.host = t.host AND t.host <> $5
     WHERE t.host <> $5
    UNION ALL
    SELECT $5, t.id, $4 FROM unnest($1::text[], $2::text[]) AS t(host, id)
     WHERE t.host = $5)
SELECT k.host, k.id AS birth_id, m.id, m.dm_channel_id, m.user_id, u.home_instance,
       u.home_user_id, u.replicated_instances::text AS replicated_instances
  FROM k
 CROSS JOIN LATERAL (
       SELECT * FROM dm_messages
        WHERE source_instance = k.origin AND source_message_id = k.id LIMIT 1) m
 CROSS JOIN LATERAL (SELECT * FROM users WHERE id = m.user_id LIMIT 1) u
UNION ALL
SELECT k.host, k.id, NULL, NULL, NULL, NULL, NULL, NULL
  FROM k
 CROSS JOIN LATERAL (
       SELECT source_message_id FROM message_tombstones
        WHERE source_instance = k.origin AND source_message_id = k.id LIMIT 1) t
UNION ALL
SELECT NULL, m.id::text, m.id, m.dm_channel_id, m.user_id, u.home_instance,
       u.home_user_id, u.replicated_instances::text
  FROM unnest($3::bigint[]) AS k(id)
 CROSS JOIN LATERAL (
       SELECT * FROM dm_messages WHERE id = k.id LIMIT 1) m
 CROSS JOIN LATERAL (
       SELECT * FROM users
        WHERE id = m.user_id AND (m.source_instance IS NULL OR home_instance IS NULL)
        LIMIT 1) u;

-- Those by where they were written before their authors' homes sent them on.
-- name: messages_aliased :many
SELECT k.host, k.id AS birth_id, m.id, m.dm_channel_id, m.user_id, u.home_instance,
       u.home_user_id, u.replicated_instances::text AS replicated_instances
  FROM unnest($1::text[], $2::text[]) AS k(host, id)
 CROSS JOIN LATERAL (
       SELECT dm_message_id FROM message_aliases
        WHERE host = k.host AND birth_id = k.id LIMIT 1) a
 CROSS JOIN LATERAL (SELECT * FROM dm_messages WHERE id = a.dm_message_id LIMIT 1) m
 CROSS JOIN LATERAL (SELECT * FROM users WHERE id = m.user_id LIMIT 1) u;

-- In id order, so that two batches never wait for each other. $1, $2: pairs by
-- their people; $3: groups; $4: by id; $5, $6: groups or the pair of a person.
-- name: conversations_lock :many
SELECT c.id, c.is_group, c.deleted_at IS NOT NULL AS is_gone, c.owner_id,
       c.owner_home_instance AS owner_host, c.pair_low, c.pair_high, c.federated_id,
       c.created_at AS known_since
  FROM dm_channels c
 WHERE c.id IN (
       SELECT p.id
         FROM unnest($1::bigint[], $2::bigint[]) AS k(low, high)
        CROSS JOIN LATERAL (
              SELECT id FROM dm_channels WHERE pair_low = k.low AND pair_high = k.high
                 AND NOT is_group LIMIT 1) p
       UNION ALL
       SELECT g.id FROM dm_channels g
        WHERE g.is_group AND g.federated_id = ANY($3::text[])
       UNION ALL
       SELECT * FROM unnest($4::bigint[])
       UNION ALL
       SELECT p.id
         FROM unnest($5::text[], $6::bigint[]) AS k(federated_id, person)
        CROSS JOIN LATERAL (
              SELECT id FROM dm_channels
               WHERE NOT is_group AND federated_id = k.federated_id
                 AND k.person IN (pair_low, pair_high) LIMIT 1) p)
 ORDER BY c.id
   FOR NO KEY UPDATE;

-- The same without locks.
-- name: conversations_find :many
SELECT c.id, c.is_group, c.deleted_at IS NOT NULL AS is_gone, c.owner_id,
       c.owner_home_instance AS owner_host, c.pair_low, c.pair_high, c.federated_id,
       c.created_at AS known_since
  FROM dm_channels c
 WHERE c.is_group AND c.federated_id = ANY($1::text[])
UNION ALL
SELECT p.id, false, false, NULL, NULL, p.pair_low, p.pair_high, p.federated_id, p.created_at
  FROM unnest($2::text[], $3::bigint[]) AS k(federated_id, person)
 CROSS JOIN LATERAL (
       SELECT * FROM dm_channels
        WHERE NOT is_group AND federated_id = k.federated_id
          AND k.person IN (pair_low, pair_high) LIMIT 1) p;

-- name: members_of_groups :many
SELECT m.dm_channel_id, m.user_id, u.home_instance AS host,
       u.password_hash = '!federation-replicated' AS is_stub
  FROM dm_members m JOIN users u ON u.id = m.user_id
 WHERE m.dm_channel_id = ANY($1::bigint[])
 ORDER BY m.dm_channel_id, m.user_id;
