-- In id order, so that two batches never wait for each other.
-- name: conversations_lock :many
SELECT c.id, c.is_group, c.pair_low, c.pair_high, c.federated_id
  FROM dm_channels c
 WHERE c.id IN (
       SELECT p.id
         FROM unnest($1::bigint[], $2::bigint[]) AS k(low, high)
        CROSS JOIN LATERAL (
              SELECT id FROM dm_channels WHERE pair_low = k.low AND pair_high = k.high
                 AND NOT is_group LIMIT 1) p
       UNION ALL
       SELECT g.id FROM dm_channels g
        WHERE g.is_group AND g.federated_id = ANY($3::text[]) AND g.deleted_at IS NULL
       UNION ALL
       SELECT * FROM unnest($4::bigint[]))
 ORDER BY c.id
   FOR NO KEY UPDATE;

-- name: members_among :many
SELECT m.dm_channel_id, m.user_id
  FROM dm_members m
  JOIN unnest($1::bigint[], $2::bigint[]) AS k(channel, person)
    ON m.dm_channel_id = k.channel AND m.user_id = k.person;
